"""Makes the documents of the JSON API, their OpenAPI description, and the events.

Only `event_reader` reads tables. The other modules contain only types and pure functions. The package may import
everything that `streaming.page` may import.
"""
