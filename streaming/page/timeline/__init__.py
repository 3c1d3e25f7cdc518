"""Makes the timeline of a group: a picture of the last hour, 6 hours, 24 hours or 7 days.

    tables ──► reader ──► history (values), lag_line, member_rows ──► picture (shapes) ──► templates/timeline.html

Only `reader` reads tables and has state. All other modules contain pure functions. The package may import everything
that `streaming.page` may import.
"""
