"""Where verdicts go: Delta tables that keep, a registry that serves `/metrics`.

tables.py        the schema of every table, with what each column means
rows.py          turns, lanes and lag as rows of those tables
delta.py         the tables on disk: creating, checking, appending once
commit_book.py   the last commit of every key, as columns
registry.py      the present, as the metrics show it
metrics.py       a scrape, built from the registry: what was asked for (shown.py) is made and counted (told.py,
                 *_families.py), and as much of it as may be (exposure.py, ranking.py) shown as text (lines.py)
http.py          the port
"""
