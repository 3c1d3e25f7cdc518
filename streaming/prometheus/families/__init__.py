"""The samples of each family of metrics, one module for each kind of fact.

May import the rest of `prometheus` but `metrics`.
"""
