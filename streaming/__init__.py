"""The monitor of consumer groups. See DESIGN.md.

`pyproject.toml` lists the layers. A package may import only lower layers.
"""
