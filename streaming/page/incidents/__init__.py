"""Selects the incidents that pages and the API show, and converts them to JSON.

The rules of incidents are in `evaluation.incidents`. `reader.py` reads the table. `listing.py` and `as_json.py` contain
only pure functions. The package may import everything that `streaming.page` may import.
"""
