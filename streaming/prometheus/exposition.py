"""Creates a response from metric headers and sample lines, in Prometheus' text format or in OpenMetrics.

prometheus-client writes the header lines (`# HELP`, `# TYPE`). The response contains only families with samples.

During a scrape, Python's garbage collection is paused. Otherwise, Python would start many garbage collections, because
a scrape creates many thousand text objects. Each garbage collection would search the complete state of all groups. The
objects of a scrape have no reference cycles, so they need no garbage collection.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import Buffer

from streaming.signals import Signal

Encoder = Callable[[Collector], bytes]
"""A function of prometheus-client that writes all families of a collector in one of the two formats."""

Text = Buffer
"""The bytes of complete lines."""
Pieces = Sequence[Text]
"""A complete response in pieces. To join the pieces would take too long, because a response can have 100 MB."""

END = b"# EOF\n"

_PROCESS_REGISTRY = CollectorRegistry(auto_describe=False)
for _collector in (ProcessCollector, PlatformCollector, GCCollector):
    _collector(registry=_PROCESS_REGISTRY)


def exposition(families: Iterable[tuple[Signal, Sequence[Text]]], encoder: Encoder) -> Pieces:
    r"""Return the complete response. `families` contains each metric and the lines of its samples.

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
    family = Metric(signal.name.removesuffix("_total"), signal.help, signal.kind)
    return encoder(_Families([family])).removesuffix(END)


def process_metrics(encoder: Encoder) -> bytes:
    """Return the standard metrics of prometheus-client: `process_*`, `python_info` and `python_gc_*`.

    The metrics describe the Python process that answers the scrape. They have no label for the cluster, and occur once
    in a response. In contrast, `rebalance_monitor_resident_memory_bytes` also includes the processes of Spark.
    """
    return encoder(_PROCESS_REGISTRY).removesuffix(END)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collection.

    If several scrapes overlap, the pause ends when the oldest scrape ends, also for the other scrapes.
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
