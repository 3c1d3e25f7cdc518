"""The sampling loop: lag, conditions, readiness, feedback to groups, and maintenance of the tables.

`sampler.py` calls the other modules in order. May import all modules of `run` but `cluster_run`, `watch` and `monitor`.
"""
