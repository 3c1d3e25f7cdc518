"""Load users' strategies, and run them in separate processes with limits. See ``assignors/CUSTOM.md``.

The package may import `config` and `assignors`.
"""
