"""Answers requests. Each module answers one kind of page. `answers` contains what all these modules need.

These modules may import everything in `streaming.page` except the application.
"""
