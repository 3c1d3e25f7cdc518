"""The part `past`: measures pages and documents as of a moment, from tables of 30 days.

The requests go through the application of the port, without the network. Each figure is the median of three answers.
If the machine is busy, compare the processor time.
The moment is the end of the tables, because then the most rows come before it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.past.moments import format_moment
from streaming.state.monitor_state import MonitorState
from tests.bench.figures import Figure, Target, median
from tests.bench.past_tables import CLUSTER, PastTables, group_id

ANSWER_TARGET = Target(2.0, "at most")
_ANSWERS = 3


def past_figures(folder: Path, size: PastTables) -> list[Figure]:
    """Write the tables, and return the time of each kind of answer."""
    started_seconds = time.monotonic()
    size.write(folder)
    written_seconds = time.monotonic() - started_seconds
    end_ms = int((size.first_time + timedelta(days=size.days)).timestamp() * 1000)
    pages, at, group = _pages(folder, end_ms), format_moment(end_ms - 60_000), group_id(size.lagging_groups - 1)
    before_ms = end_ms - 86_400_000
    addresses = {
        "all groups as of a moment": f"/?at={at}",
        "all groups as of a moment, JSON": f"/api/v1/groups?at={at}",
        "a group as of a moment": f"/groups/{group}?at={at}",
        "two generations of a group compared": f"/groups/{group}?from={before_ms}&to={at}",
    }
    rows = f"{size.days} days, {size.groups:,} groups, lag of {size.lagging_groups} groups"
    seconds = {name: _answer_seconds(pages, address) for name, address in addresses.items()}
    return [
        *(Figure(f"{name} ({rows})", "s", elapsed, target=ANSWER_TARGET) for name, (elapsed, _) in seconds.items()),
        *(Figure(f"{name}: processor time", "s", processor) for name, (_, processor) in seconds.items()),
        Figure("time to write the synthetic tables", "s", written_seconds),
    ]


def _pages(folder: Path, now_ms: int) -> Pages:
    view = MonitorState().view()
    rebalances = RebalanceReader(str(folder), CLUSTER, time.monotonic)
    watched = WatchedCluster(CLUSTER, view, now_ms, 30_000)
    return Pages([ClusterView(CLUSTER, lambda: watched, rebalances)], ())


def _answer_seconds(pages: Pages, address: str) -> tuple[float, float]:
    """Return the median elapsed time and the median processor time of an answer, in seconds.

    Raises ValueError if the status is not 200.
    """
    parts = urlsplit(address)
    environ: Mapping[str, Any] = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": parts.path,
        "QUERY_STRING": parts.query,
        "HTTP_ACCEPT_ENCODING": "gzip",
    }
    elapsed, processor = list[float](), list[float]()
    for _ in range(_ANSWERS):
        started_seconds, started_processor_seconds = time.monotonic(), time.process_time()
        status = _ask(pages, environ)
        elapsed.append(time.monotonic() - started_seconds)
        processor.append(time.process_time() - started_processor_seconds)
        if status != "200 OK":
            raise ValueError(f"{address}: {status}")
    return median(elapsed), median(processor)


def _ask(pages: Pages, environ: Mapping[str, Any]) -> str:
    """Send a request. Returns the status of the answer."""
    statuses: list[str] = []
    list(pages(dict(environ), lambda status, *_: statuses.append(status)))
    return statuses[0]
