"""Facts that the driver learns and gives back to groups: which group waits for which.

Pure. May import `evaluation` and what lies below it.
"""
