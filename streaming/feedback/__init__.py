"""Decides which external facts the driver sends to the state of each group.

This package is pure. It may import `evaluation` and the layers below.
"""
