"""How far a group is behind, in records and in time; whether it keeps up; what retention takes or is about to take.

Imports no other folder of `evaluation`.
"""
