"""Pages for people and JSON for programs on the port of `/metrics`: what the registry holds, put in order and in words.

    Present ──► watched ──► summary, trouble ──► overview ─┐
                       └──► group, heat_map, ... ──────────┴──► rendering (HTML) or as_json ──► application (WSGI)

Everything but `application` and `rebalances` is a pure function of values. Unknown is None, shown as `?` or said.
"""
