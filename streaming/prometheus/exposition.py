"""Joins lines of samples with the headers of their metric families, in Prometheus' text format or OpenMetrics.

prometheus-client writes the header lines (`# HELP`, `# TYPE`). A family without a sample is not in the response.

During a scrape, Python's garbage collection is paused. The objects of a scrape have no reference cycles, so they need
no garbage collection. Without the pause, many thousand pieces of text would start the collection again and again. Each
collection would visit the whole state of all groups.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import Metric
from prometheus_client.registry import Collector
from typing_extensions import Buffer

from streaming.signals import Signal

Encoder = Callable[[Collector], bytes]
"""A function of prometheus-client that writes all families of a collector, either as text or as OpenMetrics."""

Text = Buffer
"""Complete lines."""
Pieces = Sequence[Text]
"""A complete response. The response is a list of pieces.

The pieces are not joined, because a copy of 100 MB takes time.
"""

END = b"# EOF\n"


def exposition(families: Iterable[tuple[Signal, Sequence[Text]]], encoder: Encoder) -> Pieces:
    r"""Return a complete response from metrics and the lines of their samples.

    >>> from prometheus_client import generate_latest
    >>> from streaming.signals.monitor import READY
    >>> [header, lines] = exposition([(READY, [b'rebalance_monitor_ready{cluster="prod"} 1.0\n'])], generate_latest)
    >>> header.splitlines()[1], lines
    (b'# TYPE rebalance_monitor_ready gauge', b'rebalance_monitor_ready{cluster="prod"} 1.0\n')
    """
    pieces: list[Text] = []
    for signal, lines in families:
        if any(lines):
            pieces += [_header(signal, encoder), *lines]
    has_end = encoder(_Families(())).endswith(END)
    return [*pieces, END] if has_end else pieces


def _header(signal: Signal, encoder: Encoder) -> bytes:
    """Return the lines `# HELP` and `# TYPE` of a metric."""
    family = Metric(signal.name.removesuffix("_total"), signal.help, signal.kind)
    return encoder(_Families([family])).removesuffix(END)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collection.

    If several scrapes overlap, the pause ends for all of them when the scrape that started the pause ends. So the pause
    can be too short, but never too long.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
