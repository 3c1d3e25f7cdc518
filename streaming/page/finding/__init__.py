"""Finds groups by filters, by topic and by client host.

All modules of the package contain only values and pure functions. The modules may import the evaluation and other pure
modules of `streaming.page`. The modules must not import tables, clocks or sockets.
"""
