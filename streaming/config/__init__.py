"""Every setting there is: `settings.py` names them, `load.py` reads them from a file and the environment."""
