"""The present, as `/metrics` shows it. Threads put whole values in; a scrape takes whole values out."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

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
    """Everything a scrape shows, as of one moment."""

    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    lanes: Mapping[int, PartitionSnapshot] = field(default_factory=dict)
    sample: ClusterSample | None = None
    lag: LagReport | None = None
    health: Health = Health()


class Registry:
    """Holds the present. Values inside are immutable; only the references change, under a lock."""

    def __init__(self) -> None:
        self._present = Present()
        self._lock = threading.Lock()

    def present(self) -> Present:
        """The present as one consistent value."""
        with self._lock:
            return self._present

    def put_batch(self, records: Iterable[GroupRecord], lanes: Iterable[PartitionSnapshot]) -> None:
        """Take in what a batch changed. Deleted groups vanish."""
        with self._lock:
            groups = dict(self._present.groups)
            for record in records:
                groups[record.snapshot.group_id] = record
            alive = {group_id: record for group_id, record in groups.items() if record.snapshot.state != DEAD}
            known = {**self._present.lanes, **{lane.kafka_partition: lane for lane in lanes}}
            self._present = replace(self._present, groups=alive, lanes=known)

    def put_sample(self, sample: ClusterSample, lag: LagReport | None) -> None:
        """Take in what the brokers said and the lag that follows; None where no lag could be told."""
        with self._lock:
            self._present = replace(self._present, sample=sample, lag=lag)

    def put_health(self, **changes: object) -> None:
        """Change some of the health's fields."""
        with self._lock:
            self._present = replace(self._present, health=replace(self._present.health, **changes))  # type: ignore[arg-type]
