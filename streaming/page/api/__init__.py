"""The JSON API: the documents, their description (OpenAPI), and the list of events, which clients read with a cursor.

`as_json`, `documents`, `openapi` and `events` contain values and functions. Only `event_reader` reads tables.
"""
