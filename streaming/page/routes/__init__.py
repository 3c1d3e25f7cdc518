"""Answers requests: one module for each kind of page, and the responses that all of them use.

May import everything in `streaming.page` except the application.
"""
