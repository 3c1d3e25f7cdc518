"""Generate the Grafana dashboards of the monitor with Grafana's foundation SDK.

README.md explains how to use the dashboards.

`promql.py` writes queries. `words.py` defines words and colours of numbers and labels. `panels.py`, `tables.py` and
`boards.py` create panels and dashboards from them. `fleet/`, `group/`, `topic.py`, `monitor.py` and
`runbook.py` define the dashboards. `alerts/` generates the alerts. The dashboards follow these rules:

1. The description of a panel explains how to read the panel, and what an empty panel means.
2. A panel shows a missing series as 0 only if a different series proves that the value is 0. An unknown value is never
   shown as 0.
3. The worst rows come first. Each colour has a word or a title with the same meaning.
4. The result of a query contains only labels that the monitor sets, without `instance`. So if the monitor moves to a
   different machine, the lines in the panels continue.
5. A table of groups has at most `$top` rows, because a cluster can have ten thousand groups.
6. The first screen answers the questions of an engineer on call. Grafana does not run the queries of collapsed rows.
7. By default, only the worst groups have details. A panel that needs details explains this (`PanelSpec.for_details`).
"""
