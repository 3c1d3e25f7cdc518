"""The dashboard of all groups: for each problem, the number of groups and the worst groups.

The package may import the modules of `dashboards`, but no other dashboard.
"""

from dashboards.fleet.board import dashboard

__all__ = ["dashboard"]
