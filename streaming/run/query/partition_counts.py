"""Store all partition counts that `__consumer_offsets` has had since the checkpoint was created."""

from __future__ import annotations

import logging

import msgspec

from streaming.combine.own_partitions import OwnPartitions
from streaming.events import OFFSETS_TOPIC
from streaming.spark.checkpoint import batch_end_positions, last_committed_batch
from streaming.spark.files import Files

STORED_COUNTS = "offsets_topic_partition_counts"
"""The name of the checkpoint file. Without it, the only known count is the number of partitions in the last batch."""

_log = logging.getLogger(__name__)


def own_partitions(cluster: str, files: Files, view: int) -> OwnPartitions:
    """Add the current partition count (`view`) to the stored counts. If the partition count changed, log a warning."""
    known = _stored_counts(cluster, files) or _last_read_count(files)
    counts = (*(count for count in known if count != view), view)
    if counts != known:
        files.write(STORED_COUNTS, msgspec.json.encode(counts))
    if known and known[-1] != view:
        _log.warning(
            "%s: %s has %d partitions now, and had %d before. After a restart, a broker uses the new count. Then many"
            " groups belong to a different partition than before, and Kafka does not find their committed offsets. The"
            " monitor reads the old and the new partitions",
            cluster,
            OFFSETS_TOPIC,
            view,
            known[-1],
        )
    return OwnPartitions(counts)


def _stored_counts(cluster: str, files: Files) -> tuple[int, ...]:
    try:
        stored = files.read(STORED_COUNTS)
        counts = () if stored is None else msgspec.json.decode(stored, type=tuple[int, ...])
    except (OSError, msgspec.DecodeError):
        counts = (0,)
    if min(counts, default=1) < 1:
        _log.warning("%s: the file %s is damaged. Earlier partition counts are unknown", cluster, STORED_COUNTS)
        return ()
    return counts


def _last_read_count(files: Files) -> tuple[int, ...]:
    batch_id = last_committed_batch(files)
    read = {} if batch_id is None else batch_end_positions(files, batch_id)
    return (len(read),) if read else ()
