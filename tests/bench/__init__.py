"""Benchmarks of the monitor in its own process with a real broker. Each figure is shown with its target.

`run.py` is `make bench`, and `run_soak.py` is `make soak`. DESIGN.md describes each part and lists the results.
"""
