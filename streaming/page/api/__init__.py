"""The JSON API: the documents, their description (OpenAPI), and the events with a cursor.

`as_json`, `documents`, `openapi` and `events` contain values and functions. Only `event_reader` reads tables.
"""
