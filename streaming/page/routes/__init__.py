"""Answers the requests for pages, with one module per subject.

`answers` contains what all modules of the package need. The modules may import everything in `streaming.page` except
the application.
"""
