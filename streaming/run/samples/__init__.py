"""What the monitor does at each sample of the brokers: lag, conditions, readiness, facts for groups, upkeep.

`sampler.py` puts it together. May import the rest of `run` but `watch` and `monitor`.
"""
