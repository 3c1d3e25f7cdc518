"""Generate the Grafana dashboards of the monitor with Grafana's foundation SDK. README.md explains how to use them.

`promql.py` writes queries. `words.py` defines words and colours of numbers and labels. `panels.py`, `tables.py` and
`boards.py` create panels and dashboards from them. `fleet.py`, `group*.py`, `monitor.py` and `alerts.py` define the
dashboards. They follow these rules:

1. A panel has a description: how to read it, and what an empty panel means.
2. A missing series is shown as 0 only if a different series proves that the value is 0. Unknown values stay unknown.
3. The worst rows come first. The meaning of a colour is always also in a word or in the title.
4. Queries remove all labels except those of the metric. So the series continue if the monitor moves to a different
   machine.
5. A table of groups has at most `$top` rows, because a cluster can have ten thousand groups.
"""
