"""Generate the Grafana dashboards of the monitor with Grafana's foundation SDK.

README.md explains how to use the dashboards.

`promql.py` writes queries. `words.py` defines words and colours of numbers and labels. `panels.py`, `tables.py` and
`boards.py` create the parts of dashboards. `fleet/`, `group/`, `topic.py`, `monitor.py` and `runbook.py` define the
dashboards. `alerts/` generates the alerts. The dashboards follow these rules:

1. The description of a panel explains how to read the panel, and what an empty panel means.
2. A panel shows a missing series as 0 only if a second series proves that the value is known. A panel never shows an
   unknown value as 0.
3. The worst rows come first. If a colour has a meaning, a word or a title also shows this meaning.
4. Queries remove labels that Prometheus adds, such as `instance`. So the lines in the panels continue if the monitor
   moves to a different machine.
5. A table of groups has at most `$top` rows, because a cluster can have ten thousand groups.
6. The first screen answers the questions of an engineer on call. Grafana does not run the queries of collapsed rows.
7. By default, the monitor exports detailed metrics only for the worst groups. The description of a panel shows whether
   the panel needs detailed metrics (`panels.fill_panel`).

The package may import only `streaming.signals`.
"""
