"""The dashboard of one group: what an engineer on call needs first, and details in collapsed rows.

This folder may import the modules that create panels, tables and queries, but no other dashboard.
"""

from dashboards.group.board import dashboard

__all__ = ["dashboard"]
