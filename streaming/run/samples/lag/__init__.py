"""Compute lag in the sampling loop, find causes and advice, and write the tables of lag and work.

The package is allowed to import the same packages as `run.samples`, but not other modules of `run.samples`.
"""
