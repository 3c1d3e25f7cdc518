"""Makes links from the pages to dashboards in Grafana and to sections of the runbook.

The addresses come from the settings `[links]`. The modules of the package may import the settings and the evaluation.
"""
