"""What is known at this moment: groups, their last commits, and their order by severity. Threads put whole values in.

May import `evaluation` and what lies below it.
"""
