"""The dashboard of all groups: the number of groups with a problem, and the worst groups of each problem."""

from dashboards.fleet.board import dashboard

__all__ = ["dashboard"]
