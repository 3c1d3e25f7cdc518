"""The dashboard of all groups: the number of groups with a problem, and the worst groups of each problem.

The package may import the modules of `dashboards`, but no other dashboard.
"""

from dashboards.fleet.board import dashboard

__all__ = ["dashboard"]
