"""Saying once that the log is another than the one that was read, and how much of it was deleted unread.

What is said is by the rules of `integrity/log_integrity.py`.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Collection, Iterable, Mapping

from streaming.combine.partition_state import PartitionBatch
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import OFFSETS_TOPIC
from streaming.integrity.log_integrity import count_lost_offsets, find_recreated_partitions, find_truncated_partitions
from streaming.spark.files import Files
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView

STORED_ID = "offsets_topic_id"
"""A file of its own beside the checkpoint's other ones: one that is lost, or an older monitor's, makes it unknown."""

_TOPIC_ID = re.compile(rb"[A-Za-z0-9_-]{22}")
"""As Kafka writes an id of 16 bytes: base64 for URLs, without padding."""

_log = logging.getLogger(__name__)


def report_rewound(cluster: str, monitor_state: MonitorState, rewound: Collection[int]) -> None:
    """Have the registry know it, which is not ready from then on, and say it of partitions of which it is new."""
    if new := monitor_state.put_rewound(rewound):
        _log.error(
            "%s: %s ends before where it was read to, in partition %s: cut off, or deleted and created anew."
            " New records there are taken for read, so nothing is ready: %s",
            cluster,
            OFFSETS_TOPIC,
            ", ".join(map(str, sorted(new))),
            _remedy(cluster),
        )


def _remedy(cluster: str) -> str:
    return f"stop, run `rebalance-monitor rebuild --cluster {shlex.quote(cluster)}`, and start again"


class TopicIdentity:
    """One thread's: the sampler's. Remembers the id of the topic that the checkpoint's positions are of."""

    def __init__(self, cluster: str, monitor_state: MonitorState, files: Files) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._files = files
        self._known = _stored_id(cluster, files)

    def report(self, topic_id: str | None, positions: Mapping[int, int]) -> None:
        """Compare with the id that was sampled after `positions` were reached; the first one is taken for theirs.

        So is one that comes before anything was read.
        """
        if topic_id is None or topic_id == self._known:
            return
        if another := find_recreated_partitions(positions, self._known, topic_id):
            self._report_another(another, topic_id)
        else:
            self._files.write(STORED_ID, topic_id.encode())
            self._known = topic_id

    def _report_another(self, partitions: Collection[int], topic_id: str) -> None:
        is_said = bool(self._monitor_state.view().health.rewound)
        self._monitor_state.put_rewound(partitions)
        if not is_said:
            _log.error(
                "%s: %s was deleted and created anew: its id is %s, and was %s when it was read. Records of the new one"
                " are taken for read up to where the old one was, so nothing is ready: %s",
                self._cluster,
                OFFSETS_TOPIC,
                topic_id,
                self._known,
                _remedy(self._cluster),
            )


def _stored_id(cluster: str, files: Files) -> str | None:
    """The id that was stored; None, with a warning, if the file is damaged."""
    try:
        stored = files.read(STORED_ID)
    except OSError:
        stored = b""
    if stored is not None and not _TOPIC_ID.fullmatch(stored):
        _log.warning("%s: %s is damaged: the topic there is now is taken for the one that was read", cluster, STORED_ID)
        return None
    return None if stored is None else stored.decode()


class LostRecords:
    """One thread's: the sampler's. Remembers up to where it was said already."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._reported: dict[int, int] = {}

    def report(self, lost: Mapping[int, int], positions: Mapping[int, int]) -> None:
        """Say how many records were deleted before they were read; `positions` are where reading was."""
        new = {number: count for number, count in lost.items() if positions[number] > self._reported.get(number, -1)}
        self._reported |= {number: positions[number] for number in new}
        if new:
            _log.warning(
                "%s: %s lost up to %d records in partition %s before they were read: what they said of groups is not"
                " known",
                self._cluster,
                OFFSETS_TOPIC,
                sum(new.values()),
                ", ".join(map(str, sorted(new))),
            )


class LogWatch:
    """One thread's: the sampler's. Says what a sample shows of the log."""

    def __init__(self, cluster: str, monitor_state: MonitorState, files: Files) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._topic_read = TopicIdentity(cluster, monitor_state, files)
        self._lost_records = LostRecords(cluster)

    def report(self, before: MonitorView, sample: ClusterSample) -> None:
        """Compare the sample with how far reading was `before` it."""
        positions = before.health.positions
        self._topic_read.report(sample.offsets_topic_id, positions)
        report_rewound(
            self._cluster, self._monitor_state, find_truncated_partitions(before.partition_states, sample.offsets_topic)
        )
        self._lost_records.report(count_lost_offsets(positions, sample.offsets_topic), positions)


class ForeignRecords:
    """One thread's: the query's. Reports records that do not stand in the own partition of their group."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._reported: set[int] = set()

    def report(self, batches: Iterable[PartitionBatch]) -> None:
        """Log one warning with each partition in which such records were not found before."""
        foreign = {batch.offsets_topic_partition: batch.foreign_records for batch in batches if batch.foreign_records}
        new = sorted(foreign.keys() - self._reported)
        self._reported.update(new)
        if new:
            _log.warning(
                "%s: partition %s of %s holds %d records of groups whose records belong in other partitions. They are"
                " counted (foreign_partition) and not used. A client wrote them by hand, or the partition count of the"
                " topic was changed and brokers still use the earlier count: restart those brokers",
                self._cluster,
                ", ".join(map(str, new)),
                OFFSETS_TOPIC,
                sum(foreign[number] for number in new),
            )
