"""Compute the what-if of a group in the driver, and the advice that follows from the measured produce rates.

This package is allowed to import `evaluation.causes`, `evaluation.lag` and all of `assignors`. Only `page` and `run`
use this package.
"""
