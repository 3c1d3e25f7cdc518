"""Checks if an assignment is valid and fair, and which of its moves were not necessary.

May import `sticky`.
"""
