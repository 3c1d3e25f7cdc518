"""Finds groups: the filters of the list, the groups of a topic, and the members on a client host.

These modules contain values and functions. They may import the evaluation and the other values of pages, but no table,
no clock and no socket.
"""
