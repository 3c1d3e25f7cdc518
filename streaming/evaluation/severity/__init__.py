"""What is wrong with each group on one line, and which group to look at first.

May import all of `evaluation`.
"""
