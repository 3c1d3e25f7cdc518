"""Creates the samples of each metric family, one module per subject.

May import all modules of `prometheus` except `metrics`.
"""
