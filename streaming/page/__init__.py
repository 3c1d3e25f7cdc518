"""Serves web pages and a JSON API on the port of `/metrics`. The pages and the API show the reports of groups.

    GroupReport ──► overview, group, heat_map, ... ──► rendering (HTML) or api/as_json ──► application (WSGI)

`application`, `routes`, `clusters` and the readers of tables (`rebalances`, `timeline.reader`, `incidents.reader`,
`api.event_reader`) have side effects or state. All other modules contain only pure functions. The value None means
unknown, and pages show it as `?`. The package `page` may import `state` and all layers below `state`.
"""
