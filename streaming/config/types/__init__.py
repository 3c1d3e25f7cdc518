"""Types of settings. Each module checks the values of one kind, for example durations.

The package may import `config.secret_settings`.
"""
