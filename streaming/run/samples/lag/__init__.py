"""Compute lag in the sampling loop, find causes and advice, and write the tables of lag and work.

The package may import the packages that `run.samples` may import, but no other module of `run.samples`.
"""
