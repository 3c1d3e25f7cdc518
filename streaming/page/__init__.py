"""Web pages and the JSON API on the port of `/metrics`. They show the reports of groups.

    GroupReport ──► overview, group, heat_map, ... ──► rendering (HTML) or as_json ──► application (WSGI)

All modules but `application`, `clusters` and `rebalances` are pure functions of values. None means unknown and is shown
as `?`. May import `state` and all packages below it; only `rebalances` may read tables.
"""
