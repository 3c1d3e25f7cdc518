"""Links from the pages to other systems: the dashboards in Grafana and the sections of the runbook.

The addresses come from the settings `[links]`. These modules may import the settings and the evaluation.
"""
