"""Describe in one line what is wrong with each group, and rank the groups by severity.

This package is allowed to import all other packages of `evaluation`.
"""
