"""Runs real consumer groups for the demo, and a producer for their topics. Each group shows a typical behaviour.

`groups` defines the groups. `load` runs the groups and the producer in separate processes.
"""
