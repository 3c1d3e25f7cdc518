"""Makes links to dashboards in Grafana. The dashboard opens with the time range of the page.

The UIDs are copies from `dashboards/boards.py`, because the package `dashboards` is not part of the wheel. A test
compares the copies with the originals.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

GROUP_UID: Final = "rebalance-monitor-group"
TOPIC_UID: Final = "rebalance-monitor-topic"
TIME_RANGES: Final = ("1h", "6h", "24h", "7d")
"""The time ranges of a page (`?span=`), the default first. Grafana uses the same notation."""


def group_dashboard(grafana_url: str, cluster: str, group_id: str, span: str = "") -> str | None:
    """Return the address of a group's dashboard. Return None if the address of Grafana is not configured.

    >>> group_dashboard("https://grafana", "eu", "a&b", "6h")
    'https://grafana/d/rebalance-monitor-group?var-cluster=eu&var-group=a%26b&from=now-6h&to=now'
    """
    return _dashboard(grafana_url, GROUP_UID, cluster, "group", group_id, _until_now(span))


def group_dashboard_between(  # noqa: PLR0913, PLR0917 - the parts of an address
    grafana_url: str, cluster: str, group_id: str, from_ms: int, to_ms: int | None, margin_ms: int = 0
) -> str | None:
    """Return the address of a group's dashboard for a time range, extended by `margin_ms` at each end.

    If `to_ms` is None, the range ends now.

    >>> group_dashboard_between("https://grafana", "eu", "a", 1_600_000, None, margin_ms=600_000)
    'https://grafana/d/rebalance-monitor-group?var-cluster=eu&var-group=a&from=1000000&to=now'
    """
    end = "now" if to_ms is None else to_ms + margin_ms
    return _dashboard(grafana_url, GROUP_UID, cluster, "group", group_id, f"from={from_ms - margin_ms}&to={end}")


def topic_dashboard(grafana_url: str, cluster: str, topic: str) -> str | None:
    """Return the address of a topic's dashboard. Return None if the address of Grafana is not configured."""
    return _dashboard(grafana_url, TOPIC_UID, cluster, "topic", topic, _until_now())


def _dashboard(grafana_url: str, uid: str, cluster: str, variable: str, name: str, time_range: str) -> str | None:  # noqa: PLR0913, PLR0917 - the parts of an address
    if not grafana_url:
        return None
    return f"{grafana_url}/d/{uid}?var-cluster={_encode(cluster)}&var-{variable}={_encode(name)}&{time_range}"


def _until_now(span: str = "") -> str:
    return f"from=now-{span if span in TIME_RANGES else TIME_RANGES[0]}&to=now"


def _encode(text: str) -> str:
    return quote(text.encode("utf-8", "replace"), safe="")
