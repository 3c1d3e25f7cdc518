"""Defines the fields of the responses about the past (`documents`)."""

from __future__ import annotations

from typing import TypedDict

from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.causes.cause import Kind
from streaming.page.api.documents import Condition, GroupFacts, MemberFacts, TopicPartition
from streaming.page.last_rebalances import DescribedRebalance
from streaming.past.partition import PastPartition


class CoveredCluster(TypedDict):
    """The period that the tables of one cluster cover."""

    cluster: str
    first_row_ms: int | None
    last_row_ms: int | None
    is_measured: bool | None
    last_measured_ms: int | None
    error: str | None


class Past(TypedDict):
    """The fields that all responses about the past have in common."""

    at_ms: int | None
    clusters: list[CoveredCluster]
    not_stored: list[str]


class PastError(Past):
    """An error response to a request about the past."""

    error: str


class StoredCause(TypedDict):
    """The cause of a group's lag, with the fields that the tables contain."""

    cause: Kind
    text: str
    reason: str
    topic: str | None
    partition: int | None
    member: str | None
    client_id: str | None
    client_host: str | None
    since_ms: int


class PastGroupFields(GroupFacts):
    """The fields that the list of groups and the document of one group have in common."""

    cause: StoredCause | None
    incident_id: str | None


class PastGroupList(Past):
    """The groups at the requested time in the past."""

    total_groups: int
    groups: list[PastGroupFields]


class LastFindings(TypedDict):
    """The conditions, the cause of lag and the incident of a group at its last measurement."""

    conditions: list[Condition]
    cause: StoredCause | None
    incident_id: str | None


class PastGroupDocument(Past, PastGroupFields):
    """One group at the requested time in the past."""

    last_findings: LastFindings | None
    record_timestamp_ms: int | None
    assigned_by: str | None
    members: list[MemberFacts]
    strategies: list[StrategyDrift]
    partitions: list[PastPartition]
    rebalances: list[DescribedRebalance]


class Generation(TypedDict):
    """A generation of a group."""

    generation_id: int | None
    record_timestamp_ms: int | None
    state: str
    protocol: str | None
    member_count: int | None


class ChangedMember(TypedDict):
    """A member that joined, left, rejoined, changed its subscription, or has different partitions than before."""

    member_id: str
    previous_member_id: str | None
    group_instance_id: str | None
    client_id: str
    client_host: str
    changes: list[str]
    revoked: list[TopicPartition] | None
    assigned: list[TopicPartition] | None


class Comparison(Past):
    """A comparison of two generations of a group."""

    cluster: str
    group_id: str
    before: Generation
    after: Generation
    moved_partitions: int | None
    fewest_moves: int | None
    fewest_is_exact: bool | None
    changes: list[ChangedMember]
    rebalances: list[DescribedRebalance]
    has_more_rebalances: bool
