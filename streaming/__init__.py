"""The monitor of consumer groups. See DESIGN.md."""
