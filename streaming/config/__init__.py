"""The settings: `settings.py` and `security.py` define them. `load.py` reads them from a file and the environment."""
