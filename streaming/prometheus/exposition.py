"""Lines of samples under what tells of their families: Prometheus' text format or OpenMetrics.

Lines that tell of a family (`# HELP`, `# TYPE`) are prometheus-client's own; a family without a sample is left out.
Meanwhile Python's garbage collection pauses: nothing here refers to itself, but many thousand pieces of text would set
it off again and again, and each time it walks through all that is known of the groups.
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
"""One of prometheus-client's two: all of a collector's families as text, or as OpenMetrics."""

Text = Buffer
"""Whole lines."""
Pieces = Sequence[Text]
"""A whole answer; its pieces lie where they were made, which may be a hundred MB."""

_END = b"# EOF\n"


def exposition(families: Iterable[tuple[Signal, Sequence[Text]]], encoder: Encoder) -> Pieces:
    r"""Metrics with the lines of their samples as a whole answer.

    >>> from prometheus_client import generate_latest
    >>> from streaming.signals.monitor import READY
    >>> [head, lines] = exposition([(READY, [b'rebalance_monitor_ready{cluster="prod"} 1.0\n'])], generate_latest)
    >>> head.splitlines()[1], lines
    (b'# TYPE rebalance_monitor_ready gauge', b'rebalance_monitor_ready{cluster="prod"} 1.0\n')
    """
    pieces: list[Text] = []
    for signal, lines in families:
        if any(lines):
            pieces += [_head(signal, encoder), *lines]
    is_ended = encoder(_Families(())).endswith(_END)
    return [*pieces, _END] if is_ended else pieces


def _head(signal: Signal, encoder: Encoder) -> bytes:
    """What tells of a metric."""
    family = Metric(signal.name.removesuffix("_total"), signal.help, signal.kind)
    return encoder(_Families([family])).removesuffix(_END)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Of several scrapes at once the first to begin ends the pause for all: that is early, never late."""
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
