"""The monitor measured as its users run it: a real broker, a process of its own, figures beside their bars.

`run.py` is `make bench`, `run_soak.py` is `make soak`. DESIGN.md says what each part measures, and what was measured.
"""
