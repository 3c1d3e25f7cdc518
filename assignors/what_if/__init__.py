"""What another strategy, another member or another partition would change.

May import all of `assignors`.
"""
