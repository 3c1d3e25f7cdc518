"""The settings, which `settings.py` and `security.py` define and `load.py` reads.

The package may import `evaluation`, `signals` and `assignors`.
"""
