"""Finds groups: the filters of the list, the groups of a topic, and the members on a client host.

These modules contain only values and pure functions. They may import the evaluation and other values of pages. They may
not import tables, clocks or sockets.
"""
