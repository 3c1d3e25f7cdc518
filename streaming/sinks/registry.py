"""The present, as `/metrics` shows it. Threads put whole values in; a scrape takes whole values out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from assignors.coordinator import coordinator_partition
from streaming.combine.lanes import PartitionSnapshot
from streaming.group.snapshot import DEAD
from streaming.judgement.lag import ClusterSample, LagReport
from streaming.judgement.turn import GroupRecord


@dataclass(frozen=True, slots=True)
class Health:
    """How the monitor itself fares."""

    ready: bool = False
    was_ready: bool = False
    batch_id: int = -1
    batch_seconds: float | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    query_restarts: int = 0


@dataclass(frozen=True, slots=True)
class Present:
    """Everything a scrape shows, as of one moment. `groups` holds dead groups too, as long as their totals are kept."""

    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    lanes: Mapping[int, PartitionSnapshot] = field(default_factory=dict)
    sample: ClusterSample | None = None
    lag: LagReport | None = None
    health: Health = field(default_factory=Health)

    def alive_groups(self) -> Mapping[str, GroupRecord]:
        """Groups that exist, by id, sorted."""
        return {group: record for group, record in sorted(self.groups.items()) if record.snapshot.state != DEAD}

    def held_back_groups(self) -> Callable[[str], bool]:
        """Tell of a group id whether an open transaction hides what its coordinator wrote last.

        Under read_committed nothing behind the first open transaction of a partition is handed out, other groups'
        records included. What such a group does now is unknown.
        """
        ends = self.sample.offsets_topic if self.sample else {}
        partitions = self.sample.offsets_topic_partitions if self.sample else 0
        held = {partition for partition, end in ends.items() if end.high_watermark > end.last_stable_offset}
        return cache(lambda group_id: bool(held) and coordinator_partition(group_id, partitions) in held)


class Registry:
    """Holds the present. Values inside are immutable; only the references change, under a lock."""

    def __init__(self) -> None:
        self._present = Present()
        self._lock = threading.Lock()

    def present(self) -> Present:
        """The present as one consistent value."""
        with self._lock:
            return self._present

    def put_batch(
        self, records: Iterable[GroupRecord], lanes: Iterable[PartitionSnapshot], forgotten: Iterable[str] = ()
    ) -> None:
        """Take in what a batch changed: records and lanes whole, and the ids of groups to keep nothing of."""
        with self._lock:
            groups = {**self._present.groups, **{record.snapshot.group_id: record for record in records}}
            for group_id in forgotten:
                groups.pop(group_id, None)
            known = {**self._present.lanes, **{lane.kafka_partition: lane for lane in lanes}}
            self._present = replace(self._present, groups=groups, lanes=known)

    def put_sample(self, sample: ClusterSample, lag: LagReport | None) -> None:
        """Take in what the brokers said and the lag that follows; None where no lag could be told."""
        with self._lock:
            self._present = replace(self._present, sample=sample, lag=lag)

    def put_health(self, **changes: object) -> None:
        """Change some of the health's fields."""
        with self._lock:
            self._present = replace(self._present, health=replace(self._present.health, **changes))  # type: ignore[arg-type]
