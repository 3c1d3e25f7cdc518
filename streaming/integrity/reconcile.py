"""What the brokers know no more although no record says so: ghosts of groups and of committed offsets.

A tombstone is deleted from the log a day after it was written (`delete.retention.ms`). A monitor that was away for
longer never reads it, and what it deleted would live on for ever. Rules:

1. Suspect is what our records tell of and the brokers, asked after those records were read, do not.
2. A suspect may have its tombstone still ahead of us. So the log has to be read first up to where it ended after the
   brokers were asked.
3. A record of the suspect in between clears it.
4. Only an answer proves: a listing with gaps, offsets of a topic we may not describe and a group that cannot be
   described leave things as they are.

Worked example: at read-up-to 90 of its partition a group's last record is at 50, the listing lacks the group, and the
partition ends at 100. Once read up to 100 with 50 still its last record, the group is gone, and no record says so.
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
    """Something last told of at `after_offset` of its Kafka partition; read up to `read_up_to` its end must show."""

    offsets_topic_partition: int
    after_offset: int
    read_up_to: int
    listed_at_ms: int


def suspected_groups(
    groups: Mapping[str, GroupState], listing: GroupListing, sample: ClusterSample
) -> Mapping[str, Suspect]:
    """Living groups that the listing lacks (rule 1). `sample` was made after the listing, the groups read before."""
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
    """Those nothing was heard of since (rule 3)."""

    def is_silent(group_id: str, suspect: Suspect) -> bool:
        record = groups.get(group_id)
        position = record.snapshot.position if record else None
        return (
            record is not None
            and not record.snapshot.is_over
            and position is not None
            and (position.offsets_topic_partition, position.offsets_topic_offset)
            == (suspect.offsets_topic_partition, suspect.after_offset)
            and group_id not in listing.groups
        )

    return {group_id: suspect for group_id, suspect in suspects.items() if is_silent(group_id, suspect)}


def is_read(suspect: Suspect, positions: Mapping[int, int]) -> bool:
    """Whether the log has been read up to where the suspect's end must have shown (rule 2)."""
    return positions.get(suspect.offsets_topic_partition, 0) >= suspect.read_up_to


def suspected_commits(
    commits: pa.Table,
    answers: Mapping[str, OffsetsByPartition | Unanswered],
    described_topics: Mapping[str, TopicMetadata],
) -> pa.Table:
    """The commits (columns group_id, topic, partition, ...) that their groups' coordinators know nothing of.

    OffsetFetch leaves out topics we may not describe without a word, so only topics that were described count (rule 4).
    """
    answered = {group_id: offsets for group_id, offsets in answers.items() if not isinstance(offsets, Unanswered)}

    def is_missing(group_id: str, topic: str, partition: int) -> bool:
        return group_id in answered and topic in described_topics and (topic, partition) not in answered[group_id]

    rows = zip(*(commits[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)
    return commits.filter(pa.array([is_missing(*row) for row in rows], pa.bool_()))


@dataclass(frozen=True, slots=True)
class MissingCommits:
    """Commits of one Kafka partition that their coordinator knows nothing of."""

    suspect: Suspect
    vanished: CommitsVanished


def missing_by_partition(missing: pa.Table, sample: ClusterSample) -> list[MissingCommits]:
    """The commits of `suspected_commits` by the Kafka partition they stand in.

    `sample` was made after the coordinators were asked; a partition whose end it lacks is left for the next round.
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
