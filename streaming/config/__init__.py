"""Every setting: `settings.py` and `security.py` name them, `load.py` reads them from a file and the environment."""
