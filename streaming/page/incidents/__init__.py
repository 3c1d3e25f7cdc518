"""Selects the incidents that pages and the API show.

The rules of incidents are in `evaluation.incidents`. `reader.py` reads the table. `listing.py` contains only pure
functions. The package may import everything that `streaming.page` may import.
"""
