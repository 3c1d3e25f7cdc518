"""Find deleted groups and deleted committed offsets whose tombstones the monitor did not read.

Kafka removes a tombstone from the log one day after it was written (`delete.retention.ms`). If the monitor was stopped
for more than one day, it may miss the tombstone. Without this module, the monitor would show the deleted group or
commit forever. Rules:

1. The monitor reads records, and then requests all groups or commits from the brokers. A group or commit is a *suspect*
   if it is in the records, but not in the brokers' response.
2. The log can contain an unread tombstone of the suspect. So the monitor samples the end of the log after the response,
   and reads the log up to the sampled end.
3. A new record of the suspect before the sampled end proves that the suspect was not deleted.
4. Only a complete response proves a deletion. A response is incomplete if a broker did not list its groups, if the
   monitor has no DESCRIBE permission for the topic of a committed offset, or if the request about a group failed.

Example: the position in the partition is 90, and the group's last record is at offset 50. The listing does not contain
the group, and the partition ends at 100. The group was deleted if its last record is still at offset 50 when the
position is 100.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from streaming.combine.partition_state import CommitsVanished
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import TopicMetadata
from streaming.group.listing import GroupListing, OffsetsByPartition, Unanswered


@dataclass(frozen=True, slots=True)
class Suspect:
    """A group or commits that may have been deleted.

    `after_offset` is the offset of the last record that the monitor has read. `read_up_to` is the end of the log after
    the brokers' response, so a tombstone has a lower offset. `listed_at_ms` is the time of the response.
    """

    offsets_topic_partition: int
    after_offset: int
    read_up_to: int
    listed_at_ms: int


def suspected_groups(
    groups: Mapping[str, GroupState], listing: GroupListing, sample: ClusterSample
) -> Mapping[str, Suspect]:
    """Return the groups in the records but not in the listing (rule 1).

    The caller must read `groups` before the listing, and `sample` after the listing.
    """
    if not listing.is_complete:
        return {}
    suspects = {}
    for group_id, record in groups.items():
        position = record.snapshot.position
        if position is None or record.snapshot.is_over or group_id in listing.groups:
            continue
        if (ends := sample.offsets_topic.get(position.offsets_topic_partition)) is not None:
            suspects[group_id] = Suspect(
                position.offsets_topic_partition,
                position.offsets_topic_offset,
                ends.high_watermark,
                listing.sampled_at_ms,
            )
    return suspects


def keep_silent_suspects(
    suspects: Mapping[str, Suspect], groups: Mapping[str, GroupState], listing: GroupListing
) -> Mapping[str, Suspect]:
    """Return the suspects that are not in the new `listing`, and that have no new records (rule 3)."""
    kept = {}
    for group_id, suspect in suspects.items():
        record = groups.get(group_id)
        position = record.snapshot.position if record and not record.snapshot.is_over else None
        if position is None or group_id in listing.groups:
            continue
        at = position.offsets_topic_partition, position.offsets_topic_offset
        if at == (suspect.offsets_topic_partition, suspect.after_offset):
            kept[group_id] = suspect
    return kept


def is_read(suspect: Suspect, positions: Mapping[int, int]) -> bool:
    """Return True if the monitor has read the log up to `read_up_to` of the suspect (rule 2)."""
    return positions.get(suspect.offsets_topic_partition, 0) >= suspect.read_up_to


def suspected_commits(
    commits: pa.Table,
    answers: Mapping[str, OffsetsByPartition | Unanswered],
    described_topics: Mapping[str, TopicMetadata],
) -> pa.Table:
    """Return the commits that are not in the responses of their groups' coordinators.

    Without DESCRIBE on a topic, OffsetFetch omits the topic without an error. So commits for topics that are not in
    `described_topics` are ignored (rule 4).
    """
    answered = {group_id: offsets for group_id, offsets in answers.items() if not isinstance(offsets, Unanswered)}

    def is_missing(group_id: str, topic: str, partition: int) -> bool:
        return group_id in answered and topic in described_topics and (topic, partition) not in answered[group_id]

    rows = zip(*(commits[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)
    return commits.filter(pa.array([is_missing(*row) for row in rows], pa.bool_()))


@dataclass(frozen=True, slots=True)
class MissingCommits:
    """Commits that are in one `__consumer_offsets` partition, but not in the responses of the coordinators."""

    suspect: Suspect
    vanished: CommitsVanished


def missing_by_partition(missing: pa.Table, sample: ClusterSample) -> list[MissingCommits]:
    """Group the commits from `suspected_commits` by their `__consumer_offsets` partition.

    The caller must request `sample` after the coordinators have answered. Partitions without a sampled end are omitted:
    the next check finds their commits again.
    """
    by_partition: dict[int, list[tuple[bytes, int]]] = defaultdict(list)
    rows = zip(
        *(missing[name].to_pylist() for name in ("offsets_topic_partition", "key", "offsets_topic_offset")), strict=True
    )
    for offsets_topic_partition, key, offsets_topic_offset in rows:
        by_partition[offsets_topic_partition].append((key, offsets_topic_offset))
    found = []
    for offsets_topic_partition, commits in sorted(by_partition.items()):
        keys, kafka_offsets = zip(*commits, strict=True)
        if (ends := sample.offsets_topic.get(offsets_topic_partition)) is not None:
            suspect = Suspect(offsets_topic_partition, max(kafka_offsets), ends.high_watermark, sample.sampled_at_ms)
            found.append(MissingCommits(suspect, CommitsVanished(keys, kafka_offsets)))
    return found
