"""Converts table rows to the types of a report.

1. Values that no table stores are unknown (`report.NOT_STORED`). The state of a rebalance in progress is also unknown.
2. Rows from earlier versions of the monitor can have null columns. Null means unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streaming.delta.cells import timestamp_ms
from streaming.evaluation.assignment.drift import MisplacedPartition, StrategyDrift
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import Members, Membership
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.group.members import GroupMember, TopicPartitions

Row = Mapping[str, Any]
"""A table row. The keys are the column names."""


@dataclass(frozen=True)
class StoredMembers(Members):
    """The members in a row of `group_generations`. `leader_id` is the member id of the leader."""

    stored: tuple[GroupMember, ...] = ()
    leader_id: str | None = None

    @cached_property
    def each(self) -> tuple[GroupMember, ...]:
        """All members, sorted by id."""
        return self.stored

    @property
    def leader(self) -> GroupMember | None:
        """The leader of a classic group, or None if the leader is unknown."""
        return None if self.leader_id is None else self.by_id.get(self.leader_id)


def position(row: Row) -> tuple[Any, ...]:
    """Return the time and the position of the record that caused a row. Rows of one record have the same position."""
    return row["record_time"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def is_of_generation(row: Row, generation: Row) -> bool:
    """Return True if both rows are for the same generation, or for the same record if the generation is unknown."""
    if generation["generation_id"] is None:
        return position(row) == position(generation)
    return bool(row["generation_id"] == generation["generation_id"])


def membership(row: Row, members: int | None) -> Membership:
    """Return the membership of the group from a row of `group_generations`. `members` is the number of members."""
    return Membership(
        group_type=row["group_type"],
        state=row["state"],
        generation_id=row["generation_id"],
        protocol_type=row["protocol_type"],
        protocol=row["protocol"],
        protocol_source=row["protocol_source"],
        members=members,
        record_timestamp_ms=timestamp_ms(row["record_time"]),
    )


def group_members(row: Row) -> tuple[GroupMember, ...]:
    """Return the members in a row of `group_generations`, sorted by member id."""
    return tuple(_member(member) for member in row["members"] or ())


def _member(row: Row) -> GroupMember:
    subscription = row["subscription"]
    return GroupMember(
        member_id=row["member_id"],
        group_instance_id=row["group_instance_id"],
        client_id=row["client_id"],
        client_host=row["client_host"],
        rack_id=row["rack_id"],
        subscribed_topics=None if subscription is None else tuple(subscription),
        subscribed_regex=row["subscribed_regex"],
        member_epoch=row["member_epoch"],
        owned=_partitions(row["owned"]),
        assigned=_partitions(row["assignment"]),
        target=_partitions(row["target"]),
        pending_revocation=_partitions(row["pending_revocation"]),
    )


def _partitions(rows: Sequence[Row] | None) -> TopicPartitions | None:
    """Return the sorted partitions. If the name of a topic is unknown, use the topic id."""
    if rows is None:
        return None
    return tuple(sorted((row["topic"] or row["topic_id"] or "", row["partition"]) for row in rows))


def drifts(rows: Iterable[Row]) -> tuple[StrategyDrift, ...]:
    """Return the verdicts from rows of `assignment_drift`. The verdict for the group's own strategy comes first."""
    return tuple(sorted((_drift(row) for row in rows), key=lambda drift: (not drift.is_group_strategy, drift.strategy)))


def _drift(row: Row) -> StrategyDrift:
    return StrategyDrift(
        strategy=row["strategy"],
        is_group_strategy=row["is_group_strategy"],
        verdict=row["verdict"],
        reason=row["reason"] or "",
        drift_partitions=row["drift_partitions"],
        misplaced=tuple(
            MisplacedPartition(one["topic"], one["partition"], tuple(one["actual_members"]), one["expected_member"])
            for one in row.get("misplaced") or ()
        ),
        violations=tuple(row["violations"] or ()),
    )


def imbalance(row: Row) -> Imbalance:
    """Return the distribution of work from a row of `assignment_imbalance`."""
    return Imbalance(**{name: row[name] for name in Imbalance.__struct_fields__})


def condition(row: Row) -> Condition:
    """Return the condition from a row of `group_conditions`."""
    return Condition(row["condition"], timestamp_ms(row["since_time"]), row["detail"] or "")
