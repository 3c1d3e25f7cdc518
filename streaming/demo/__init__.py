"""Runs real consumer groups for the demo, and a producer for their topics. Each group shows a typical behaviour.

`groups` defines the groups. `load` runs the groups and the producer in separate processes. The package may import
`embedded` and `config`. The monitor of the demo runs in a separate process.
"""
