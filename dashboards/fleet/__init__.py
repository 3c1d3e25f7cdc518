"""The dashboard of all groups: how many groups have a problem, and the worst groups of each problem.

This folder may import the modules that create panels, tables and queries, but no other dashboard.
"""

from dashboards.fleet.board import dashboard

__all__ = ["dashboard"]
