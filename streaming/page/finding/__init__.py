"""Finds groups: the filters of the list, the groups of a topic, and the members on a client host.

All modules of the package contain only values and pure functions. The modules may import the evaluation and other
values of pages. The modules may not import tables, clocks or sockets.
"""
