"""Answers the requests for pages, with one module per subject.

`answers` contains what all these modules need. These modules may import everything in `streaming.page` except the
application.
"""
