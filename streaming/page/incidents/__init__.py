"""The incidents on the pages and in the API: which incidents a request selects, and their fields.

The rules of incidents are in `evaluation.incidents`. `reader.py` reads the table. The other modules only use values.
"""
