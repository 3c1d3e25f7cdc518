"""Writes the metrics on `/metrics` as text, and limits the number of series.

`metrics.py` answers a scrape. `metric_selection` selects the metrics, and `families` creates the samples.
`series_limit` limits the number of series. `lines` and `exposition` write the text. The package `prometheus` may import
`state` and all packages in the layers below `state`.
"""
