"""The sampling loop: lag, conditions, readiness, feedback to groups, and maintenance of the tables.

`sampler.py` calls the other modules in a fixed order. The package `samples` may import all modules of `run` except
`cluster_run`, `watch` and `monitor`.
"""
