"""Report rewound partitions and lost records of `__consumer_offsets` once (rules: `integrity/log_integrity.py`)."""

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
"""The checkpoint file that stores the topic id. If the file does not exist, the topic id is unknown."""

_TOPIC_ID = re.compile(rb"[A-Za-z0-9_-]{22}")
"""The text form of Kafka's 16-byte topic id: URL-safe base64 without padding."""

_log = logging.getLogger(__name__)


def report_rewound(cluster: str, monitor_state: MonitorState, rewound: Collection[int]) -> None:
    """Store rewound partitions. If some are new, log an error. The cluster stays not ready until the run ends."""
    if new := monitor_state.put_rewound(rewound):
        _log.error(
            "%s: partition %s of %s ends before the offset that the monitor has already read. The partition was"
            " truncated, or the topic was deleted and recreated. The monitor misses new records in this partition, so"
            " the cluster is not ready: %s",
            cluster,
            ", ".join(map(str, sorted(new))),
            OFFSETS_TOPIC,
            _remedy(cluster),
        )


def _remedy(cluster: str) -> str:
    return f"stop the monitor, run `rebalance-monitor rebuild --cluster {shlex.quote(cluster)}`, and start it again"


def _stored_id(cluster: str, files: Files) -> str | None:
    """Return the stored topic id. If the file with the id is damaged, log a warning and return None."""
    try:
        stored = files.read(STORED_ID)
    except OSError:
        stored = b""
    if stored is not None and not _TOPIC_ID.fullmatch(stored):
        _log.warning(
            "%s: the file %s is damaged. So the monitor assumes that __consumer_offsets was not deleted and recreated",
            cluster,
            STORED_ID,
        )
        return None
    return None if stored is None else stored.decode()


class LogWatch:
    """Checks at each sample whether `__consumer_offsets` was truncated or recreated. Also checks for lost records.

    Only the sampler's thread calls the methods.
    """

    def __init__(self, cluster: str, monitor_state: MonitorState, files: Files) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._files = files
        self._topic_id = _stored_id(cluster, files)
        self._lost_at: dict[int, int] = {}

    def report(self, before: MonitorView, sample: ClusterSample) -> None:
        """Compare `sample` with the positions in `before`. The view `before` must be older than the sample."""
        positions = before.health.positions
        self.report_topic_id(sample.offsets_topic_id, positions)
        report_rewound(
            self._cluster, self._monitor_state, find_truncated_partitions(before.partition_states, sample.offsets_topic)
        )
        self.report_lost(count_lost_offsets(positions, sample.offsets_topic), positions)

    def report_topic_id(self, topic_id: str | None, positions: Mapping[int, int]) -> None:
        """Compare `topic_id` with the stored id. If no id is stored or no record was read yet, only store `topic_id`.

        `topic_id` must be sampled after `positions`.
        """
        if topic_id is None or topic_id == self._topic_id:
            return
        partitions = find_recreated_partitions(positions, self._topic_id, topic_id)
        if not partitions:
            self._files.write(STORED_ID, topic_id.encode())
            self._topic_id = topic_id
            return
        is_reported = bool(self._monitor_state.view().health.rewound)
        self._monitor_state.put_rewound(partitions)
        if not is_reported:
            _log.error(
                "%s: %s was deleted and recreated: its topic id is %s, and was %s when the monitor read it. The monitor"
                " misses the new records whose offsets are below its old positions, so the cluster is not ready: %s",
                self._cluster,
                OFFSETS_TOPIC,
                topic_id,
                self._topic_id,
                _remedy(self._cluster),
            )

    def report_lost(self, lost: Mapping[int, int], positions: Mapping[int, int]) -> None:
        """Log the number of records that were deleted before the monitor read them. Report each loss once."""
        new = {number: count for number, count in lost.items() if positions[number] > self._lost_at.get(number, -1)}
        self._lost_at |= {number: positions[number] for number in new}
        if new:
            _log.warning(
                "%s: up to %d records in partition %s of %s were deleted before the monitor read them. The monitor does"
                " not know their content",
                self._cluster,
                sum(new.values()),
                ", ".join(map(str, sorted(new))),
                OFFSETS_TOPIC,
            )


class ForeignRecords:
    """Reports *foreign* records: records that are not in the `__consumer_offsets` partition of their group.

    Only the query's thread calls the methods.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._reported: set[int] = set()

    def report(self, batches: Iterable[PartitionBatch]) -> None:
        """Log one warning about all partitions whose first foreign records are in `batches`."""
        foreign = {batch.offsets_topic_partition: batch.foreign_records for batch in batches if batch.foreign_records}
        new = sorted(foreign.keys() - self._reported)
        self._reported.update(new)
        if new:
            _log.warning(
                "%s: partition %s of %s contains %d records of groups whose records belong to other partitions. The"
                " monitor counts these records (foreign_partition), but does not use them. There are two possible"
                " causes. First: a client wrote the records directly. Second: the partition count of the topic changed,"
                " and some brokers still use the old count: restart these brokers",
                self._cluster,
                ", ".join(map(str, new)),
                OFFSETS_TOPIC,
                sum(foreign[number] for number in new),
            )
