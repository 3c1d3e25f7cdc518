"""The values of pages and JSON documents about a moment in the past (`?at=`) or two generations (`?from=`, `?to=`).

The values come from `streaming.past`. `routes.past` answers the requests.
"""
