"""Generate the Grafana dashboards of the monitor with Grafana's foundation SDK. README.md explains how to use them.

`promql.py` writes queries. `words.py` defines words and colours of numbers and labels. `panels.py`, `tables.py` and
`boards.py` create panels and dashboards from them. `fleet.py`, `group*.py`, `monitor.py` and `runbook.py` define the
dashboards. `alerts/` generates the alerts. The dashboards follow these rules:

1. A panel has a description: how to read it, and what an empty panel means.
2. A panel shows a missing series as 0 only if a different series proves that the value is 0. An unknown value is never
   shown as 0.
3. The worst rows come first. The meaning of a colour is also shown by a word or by the title.
4. Queries keep only the metric's own labels. So if the monitor moves to a different machine, the lines of the panels
   continue.
5. A table of groups has at most `$top` rows, because a cluster can have ten thousand groups.
"""
