"""Creates the samples of each metric family, with one module per subject.

The package `families` may import all modules of `prometheus` except `metrics`.
"""
