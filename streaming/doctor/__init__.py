"""The checks of `rebalance-monitor doctor`.

The modules that start with `ask_` send requests, or read facts about this machine. `checkup` lists all checks, and
`time_limit` runs them. All other modules contain only pure functions, which create findings. The package may import all
packages except `cli`, `demo` and `run`.
"""
