"""The dashboard of one group: first what an on-call engineer needs, then details in collapsed rows.

The package may import the modules of `dashboards`, but no other dashboard.
"""

from dashboards.group.board import dashboard

__all__ = ["dashboard"]
