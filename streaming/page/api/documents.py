"""Defines the fields of all responses of the API. `openapi` builds the OpenAPI document from the types.

Each class is one schema. If the API returns a value unchanged, the schema is the Python type of the value, for example
`PartitionLag`. `as_json` and `events` create the documents. The tests compare the fields of responses with the types.
`API.md` describes the fields.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired

from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.causes.cause import Kind
from streaming.evaluation.causes.member_work import Work
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.evaluation.severity.trouble import Trouble
from streaming.page.group import CommitGaps, PartitionLag, WorkShare
from streaming.page.last_rebalances import DescribedRebalance
from streaming.page.what_if import ChangeOutcomes

DEFAULT_EVENTS, MAX_EVENTS = 100, 1_000
"""Default and maximum number of events in one response."""


class Cluster(TypedDict):
    """The state of the monitor for one cluster."""

    cluster: str
    phase: Literal["catching_up", "stale", "not_ready", "ready"]
    source: Literal["offsets-topic", "admin-api"]
    now_ms: int
    sampled_at_ms: int | None
    records_behind: int | None


class OneOrSeveralClusters(TypedDict):
    """All clusters of a response. If there is only one cluster, its fields are also at the top level."""

    clusters: list[Cluster]
    cluster: NotRequired[str]
    phase: NotRequired[Literal["catching_up", "stale", "not_ready", "ready"]]
    source: NotRequired[Literal["offsets-topic", "admin-api"]]
    now_ms: NotRequired[int]
    sampled_at_ms: NotRequired[int | None]
    records_behind: NotRequired[int | None]


class Error(OneOrSeveralClusters):
    """A response whose status is not 200."""

    error: str


class TopicPartition(TypedDict):
    """A partition of a topic."""

    topic: str
    partition: int


class Leader(TypedDict):
    """The member that computed the assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str


class Shares(TypedDict):
    """The distribution of the partitions."""

    assigned_partitions: int | None
    max_partitions: int | None
    min_partitions: int | None
    idle_members: int | None
    idle_in_any_assignment: int | None
    excess_partitions: int | None
    max_to_mean_ratio: float | None
    score: float | None
    skewed_topics: int
    remedy: str | None


class Condition(TypedDict):
    """An active condition."""

    condition: str
    since_ms: int
    detail: str


class LagCause(TypedDict):
    """The cause of a group's lag, with its evidence."""

    cause: Kind
    text: str
    reason: str
    topic: str
    partition: int | None
    member: str
    client_id: str
    client_host: str
    produced_records_per_second: float | None
    consumed_records_per_second: float | None
    others_consumed_records_per_second: float | None
    capacity_records_per_second: float | None
    fair_records_per_second: float | None
    window_seconds: float | None
    lost_seconds: float | None
    rebalances: int | None
    since_ms: int | None
    advice: str | None


class GroupFacts(TypedDict):
    """The fields of a group in all responses, with and without `?at=`."""

    cluster: str
    group_id: str
    group_type: str
    state: str
    generation_id: int | None
    protocol_type: str | None
    protocol: str | None
    protocol_source: str | None
    member_count: int | None
    coordinator: int | None
    leader: Leader | None
    session_timeouts_ms: list[int]
    rebalance_timeouts_ms: list[int]
    verdict: str | None
    verdict_reason: str | None
    drift_partitions: int | None
    shares: Shares
    violations: list[str]
    owned_twice_partitions: int | None
    not_subscribed_partitions: int | None
    unowned_partitions: int | None
    unowned_records: int | None
    conditions: list[Condition]
    lag: int | None
    lag_unknown: list[str]
    lag_seconds: float | None
    lag_seconds_is_bound: bool | None
    status: str | None
    records_lost: int | None
    seconds_until_lost: float | None
    last_commit_ms: int | None
    consumed_records_per_second: float | None
    produced_records_per_second: float | None
    catch_up_seconds: float | None
    offsets_expire_ms: int | None
    rebalances_total: int | None
    not_known: list[str]
    troubles: list[Trouble]


class GroupFields(GroupFacts):
    """The fields that the list of groups and the document of one group have in common."""

    cause: LagCause | None
    incident_id: str | None


class GroupList(OneOrSeveralClusters):
    """A list of groups."""

    total_groups: int
    groups: list[GroupFields]


class WorstPartition(TypedDict):
    """The partition with the largest lag in seconds."""

    topic: str
    partition: int
    owner_client_id: str | None
    owner_client_host: str | None
    owner_group_instance_id: str | None


class MemberFacts(TypedDict):
    """The fields of a member in all responses, with and without `?at=`."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    subscribed_topics: list[str] | None
    subscribed_regex: str | None
    member_epoch: int | None
    owned: list[TopicPartition] | None
    assigned: list[TopicPartition] | None
    target: list[TopicPartition] | None
    pending_revocation: list[TopicPartition] | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None


class Member(MemberFacts):
    """One member of a group."""

    is_leader: bool | None
    client_library: str | None
    client_library_evidence: Literal["assignment", "client_id"] | None


class GroupDocument(GroupFields, Cluster):
    """One group, with its members and partitions."""

    record_timestamp_ms: int | None
    worst_partition: WorstPartition | None
    assigned_by: str | None
    members: list[Member]
    strategies: list[StrategyDrift]
    partitions: list[PartitionLag]
    topic_loads: list[TopicLoad]
    work: list[WorkShare]
    member_work: list[Work] | None
    host_work: list[Work] | None
    commit_gaps: CommitGaps | None
    rebalances: list[DescribedRebalance]
    rebalances_error: str | None
    what_if: list[ChangeOutcomes]
    what_if_error: str | None


class Event(TypedDict):
    """One event. The fields of `details` depend on `type`."""

    id: str
    type: str
    cluster: str
    group_id: str | None
    timestamp_ms: int
    text: str
    details: dict[str, Any]


class Events(TypedDict):
    """Events in the order that API.md describes, and the cursor for the next request."""

    events: list[Event]
    next: str
    has_more: bool


class EventsError(TypedDict):
    """An error response to a request for events."""

    error: str


class Story(TypedDict):
    """The description of an incident in sentences."""

    what_happened: str
    since_when: str
    who: str
    how_bad: str
    what_now: str


class Link(TypedDict):
    """A coordinator, a client host or a topic that several groups of an incident have in common."""

    kind: str
    value: str


class IncidentFields(TypedDict):
    """The fields that the list of incidents and the document of one incident have in common."""

    incident_id: str
    cluster: str
    is_open: bool | None
    since_ms: int
    quiet_since_ms: int | None
    end_ms: int | None
    merged_into: str | None
    cause: str
    runbook_section: str
    story: Story
    links: list[Link]
    group_count: int
    groups: list[str]
    active_groups: list[str] | None


class IncidentList(OneOrSeveralClusters):
    """A list of incidents."""

    total_incidents: int
    incidents: list[IncidentFields]
    incidents_error: str | None


class IncidentDocument(IncidentFields, Cluster):
    """One incident, with its evidence."""

    evidence: list[Evidence]
