"""The JSON API: the documents, their description (OpenAPI), and the events, which clients read with a cursor.

Only `event_reader` reads tables. The other modules contain only types and pure functions.
"""
