"""Saying once that the log is another than the one that was read, and how much of it was deleted unread."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Collection, Mapping

from streaming.events import OFFSETS_TOPIC
from streaming.sinks.registry import Registry

_log = logging.getLogger(__name__)


def tell_rewound(cluster: str, registry: Registry, rewound: Collection[int]) -> None:
    """Have the registry know it, which is not ready from then on, and say it of partitions of which it is new."""
    if new := registry.put_rewound(rewound):
        _log.error(
            "%s: %s ends before where it was read to, in partition %s: cut off, or deleted and created anew."
            " New records there are taken for read, so nothing is ready: stop, run"
            " `rebalance-monitor rebuild --cluster %s`, and start again",
            cluster,
            OFFSETS_TOPIC,
            ", ".join(map(str, sorted(new))),
            shlex.quote(cluster),
        )


class LostRecords:
    """One thread's: the sampler's. Remembers up to where it was said already."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._told: dict[int, int] = {}

    def tell(self, lost: Mapping[int, int], positions: Mapping[int, int]) -> None:
        """Say how many records were deleted before they were read; `positions` are where reading was."""
        new = {number: count for number, count in lost.items() if positions[number] > self._told.get(number, -1)}
        self._told |= {number: positions[number] for number in new}
        if new:
            _log.warning(
                "%s: %s lost up to %d records in partition %s before they were read: what they said of groups is not"
                " known",
                self._cluster,
                OFFSETS_TOPIC,
                sum(new.values()),
                ", ".join(map(str, sorted(new))),
            )
