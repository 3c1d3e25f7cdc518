"""Answers the requests for pages, with one module per subject.

`answers` contains the types and functions that all modules of the package use. The modules may import everything in
`streaming.page` except the application.
"""
