"""Makes links from the pages to dashboards in Grafana and to sections of the runbook.

The addresses come from the settings `[links]`. These modules may import the settings and the evaluation.
"""
