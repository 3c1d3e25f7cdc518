"""Creates the samples of each metric family, with one module per subject.

This package is allowed to import all modules of `prometheus` except `metrics`.
"""
