"""Compute lag in the sampling loop, find causes and advice, and write the tables of lag and work.

This package is allowed to import the same packages as its parent. It must not import other modules of its parent.
"""
