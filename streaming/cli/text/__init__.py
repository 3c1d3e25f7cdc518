"""The output of several commands: conditions, fairness, commit gaps, escaped names, log lines, standard streams.

The package may import all packages except `run` and the modules of `cli`.
"""
