"""Selects the incidents that pages and the API show, and converts them to JSON.

The rules of incidents are in `evaluation.incidents`. `reader.py` reads the table. All other modules contain only pure
functions.
"""
