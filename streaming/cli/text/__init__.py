"""Texts that several commands print: conditions, fairness, commit gaps, escaped names.

The package may import all packages except `run` and the modules of `cli`.
"""
