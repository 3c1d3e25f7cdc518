"""The sticky strategies. The module `constrained` assigns if all subscriptions are equal, otherwise `general`.

This folder imports no other folder of `assignors`.
"""
