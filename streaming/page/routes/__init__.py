"""Answers requests. Each module answers one kind of page. `answers` has the responses that all modules use.

These modules may import everything in `streaming.page` except the application.
"""
