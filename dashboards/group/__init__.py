"""The dashboard of one group: first what an on-call engineer needs, then details in collapsed rows."""

from dashboards.group.board import dashboard

__all__ = ["dashboard"]
