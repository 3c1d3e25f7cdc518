"""The settings. `settings.py` and `security.py` define the settings. `load.py` reads them from a file and variables."""
