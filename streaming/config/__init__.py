"""The settings, which `settings.py` and `security.py` define and `load.py` reads."""
