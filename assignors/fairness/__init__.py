"""What counts as fair, lawful or a needless move, whoever assigned.

May import `sticky`.
"""
