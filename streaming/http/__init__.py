"""The HTTP port (`port.py`): who may ask, slow and hostile clients, what a client accepts, compression.

May import `prometheus` and what lies below it.
"""
