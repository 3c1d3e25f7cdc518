"""Compute in the driver how a different strategy or a different number of members would change an assignment.

This package is allowed to import `evaluation.causes`, `evaluation.lag` and all of `assignors`. Only the packages `page`
and `run` use the package `what_if`.
"""
