"""Whether an assignment is lawful and fair, and which of its moves were not needed.

May import `sticky`.
"""
