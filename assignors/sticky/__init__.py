"""The sticky strategies.

The module `constrained` is for equal subscriptions, and the module `general` for different subscriptions. The package
may import the modules of `assignors`, but no other package.
"""
