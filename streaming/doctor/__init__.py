"""The checks of `rebalance-monitor doctor`.

The modules that start with `ask_` send requests, or read facts about this machine. `checkup` lists all checks, and
`time_limit` runs them. All other modules are pure: values in, findings out. This package is allowed
to import `http` and all layers below `page`. The package `run` uses `rights` and `ask_rights`.
"""
