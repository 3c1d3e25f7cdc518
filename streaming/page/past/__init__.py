"""Makes the values of pages and JSON documents about the past.

`?at=` selects a moment. `?from=` and `?to=` compare two generations. The values come from `streaming.past`.
`routes.past` answers the requests. The package may import everything that `streaming.page` may import.
"""
