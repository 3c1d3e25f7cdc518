"""Grafana's dashboards of the monitor, made with Grafana's foundation SDK; README.md beside this says how to use them.

`promql.py` writes queries, `words.py` says what numbers and labels are called and coloured, `panels.py` and `boards.py`
put both into panels and dashboards; `fleet.py`, `group*.py` and `monitor.py` are the dashboards. Rules for all of them:

1. A panel has a description: how to read it, and what it means that nothing is shown.
2. No series is shown as 0 unless something else says that it would be there: unknown stays unknown.
3. The worst comes first. A colour never stands alone: a word or the title says what it means.
4. Queries take all labels but their own away, so that a monitor that was started elsewhere continues its series.
5. Everything that counts is at most `$top` rows long: a cluster can have ten thousand groups.
"""
