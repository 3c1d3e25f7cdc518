"""One group in every situation that the monitor distinguishes, made with the monitor's own code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from assignors import assignor_named
from assignors.coordinator import coordinator_partition
from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.causes.late_group import LateGroup
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.unowned import unowned_now
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import (
    CLASSIC,
    SHARE,
    STREAMS,
    AssignorReported,
    DecodeFailed,
    GroupEvent,
    GroupMetadataWritten,
    Position,
    TopicMetadata,
    TopicsSampled,
)
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.run.samples.lag.lag_causes import explain_lags
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import (
    current,
    emptied,
    epoch,
    formed,
    joined,
    member,
    metadata,
    modern_member,
    sampled,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.lags import lag_after_a_minute
from tests.streaming.polled.answers import answered, classic, classic_member

GROUP, CLUSTER, NOW_MS, PARTITIONS = "g", "prod", 1_000_000, 50
HOME = coordinator_partition(GROUP, PARTITIONS)
STRATEGIES = [assignor_named(name) for name in ("range", "roundrobin", "sticky", "uniform", "server-range")]

Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class Situation:
    """Events, one batch each, and then a sample. `committed` are committed offsets, and `ends` are end offsets.

    `listed` is the group in the last listing. With `is_later_than_records` the sample shows more than the records.
    In this case, rows of the tables may have a different verdict or state, because a row is as of its record.
    `late_for_samples` is the number of samples, 30 seconds apart, at which the lag was as at the last sample.
    """

    why: str
    events: Sequence[GroupEvent] = ()
    committed: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=lambda: {("orders", number): 100 for number in range(3)})
    starts: Offsets = field(default_factory=dict)
    topics: Mapping[str, int | None] = field(default_factory=lambda: {"orders": 3})
    listed: ListedGroup | None = None
    conditions: tuple[Condition, ...] = ()
    is_blocked: bool = False
    sampled_ago_ms: int = 0
    is_later_than_records: bool = False
    late_for_samples: int = 0


@dataclass(frozen=True)
class Shown:
    """The monitor's values in a situation: its monitor state, and the updates that became rows."""

    monitor_state: MonitorState
    updates: Sequence[GroupUpdate]
    partition_states: Mapping[int, PartitionSnapshot]
    lag: LagEvaluation


def shown(situation: Situation) -> Shown:
    """Apply the events and the sample of a situation."""
    record, updates = GroupState(GroupSnapshot(GROUP)), []
    for event in situation.events:
        updates.append(apply_batch(record, [event], STRATEGIES))
        record = updates[-1].record
    monitor_state, partition_states = MonitorState(), {0: PartitionSnapshot(0, 10_000, -1, {}, {})}
    monitor_state.put_batch([record] if updates else [], partition_states.values())
    sample = _sample(situation)
    lag = lag_after_a_minute(_commits(situation.committed, sample.sampled_at_ms), sample)
    listing = GroupListing(sample.sampled_at_ms, {GROUP: situation.listed} if situation.listed else {})
    monitor_state.put_sample(sample, lag, listing)
    unowned = unowned_now(
        monitor_state.view().alive_groups(), lag.partitions, sample, {0: sample.sampled_at_ms}, Limits()
    )
    monitor_state.put_conditions({GROUP: situation.conditions} if situation.conditions else {}, unowned)
    monitor_state.put_health(ready=True, was_ready=True)
    late_groups: Mapping[str, LateGroup] = {}
    for ago in reversed(range(situation.late_for_samples)):
        at_ms = sample.sampled_at_ms - 30_000 * ago
        view = monitor_state.view()
        late_groups, explained = explain_lags(late_groups, view, replace(sample, sampled_at_ms=at_ms), lag)
        monitor_state.put_explained_lags(explained)
    return Shown(monitor_state, updates, partition_states, lag)


def _sample(situation: Situation) -> ClusterSample:
    sampled_at_ms = NOW_MS - situation.sampled_ago_ms
    ends = {number: LogEnds(20, 20) for number in range(PARTITIONS)}
    if situation.is_blocked:
        ends[HOME] = LogEnds(20, 15)
    return ClusterSample(
        sampled_at_ms,
        {topic: TopicMetadata(count, sampled_at_ms) for topic, count in situation.topics.items()},
        situation.ends,
        situation.starts,
        ends,
        PARTITIONS,
        offsets_topic_leaders=dict.fromkeys(range(PARTITIONS), 2),
    )


def _commits(committed: Offsets, sampled_at_ms: int) -> pa.Table:
    commit_ms = sampled_at_ms - 1_000
    rows = [
        dict(zip(LAG_SCHEMA.names, (GROUP, topic, number, offset, commit_ms), strict=False))
        for (topic, number), offset in committed.items()
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(LAG_SCHEMA)[:5]))


def generation(members: Iterable[ClassicMember], **kind: str) -> GroupEvent:
    """Return a generation that can have a different strategy or protocol type than range."""
    return GroupMetadataWritten(Position(0, 5, 5), metadata(3, members, **kind))


def without(member_of: ClassicMember, part: str) -> ClassicMember:
    """Return a member with one undecodable part."""
    return replace(member_of, **{part: None})


def known(**partitions: int | None) -> TopicsSampled:
    """Return partition counts that were sampled after all records. The topics have ids."""
    return TopicsSampled({topic: TopicMetadata(count, 10**9, topic_id="id") for topic, count in partitions.items()})


def of(*members: ClassicMember) -> GroupEvent:
    """Return a generation of range with these members."""
    return written(5, 3, members)


NAMES = sampled(9_000, orders=3)
A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})
STABLE = [written(5, 3, [A, B]), NAMES]
CAUGHT_UP = {("orders", number): 100 for number in range(3)}
BEHIND = {("orders", 0): 40, ("orders", 1): 100, ("orders", 2): 70}
TARGETS = [
    *formed(0),
    known(orders=2),
    joined(5, "n", modern_member()),
    epoch(6, 4),
    target(7, held=(("id", (0,)),)),
    target(8, "n", (("id", (1,)),)),
    target_epoch(9, 4),
]
CROSSED = [
    *TARGETS[:5],
    known(orders=4),
    *TARGETS[6:8],
    target(7, held=(("id", (0, 3)),)),
    target(8, "n", (("id", (1, 2)),)),
    target_epoch(9, 4),
]
"""uniform would keep these targets, range would not."""
STORM = Condition("rebalance_storm", 900_000, "9 rebalances in 10 minutes")


def listed(state: str, group_type: str = "classic", protocol_type: str = "consumer") -> ListedGroup:
    """Return the group in a coordinator's listing."""
    return ListedGroup(group_type, protocol_type, state, 1)


SITUATIONS = {
    "stable": Situation("the assignment equals range's, and all records are read", STABLE, CAUGHT_UP),
    "behind": Situation("the group has lag", STABLE, BEHIND),
    "late": Situation("the group has been behind for six minutes and catches up", STABLE, BEHIND, late_for_samples=12),
    "late, no owner": Situation(
        "all waiting records are in a partition without an owner",
        [of(A, member("b")), NAMES],
        {**CAUGHT_UP, ("orders", 2): 70},
        late_for_samples=3,
    ),
    "late, commits only": Situation("owners are unknown", committed=BEHIND, late_for_samples=3),
    "late, blocked": Situation(
        "an open transaction hides the last commits",
        STABLE,
        BEHIND,
        late_for_samples=3,
        is_blocked=True,
        is_later_than_records=True,
    ),
    "late, stale sample": Situation(
        "the cause is as old as the sample", STABLE, BEHIND, late_for_samples=3, sampled_ago_ms=300_000
    ),
    "never committed": Situation("without commits the lag is unknown", STABLE),
    "drift": Situation(
        "the assignment differs from range's", [of(member("a", {"orders": [0, 1, 2]}), member("b")), NAMES], BEHIND
    ),
    "idle member": Situation("two of four members are idle", [of(A, B, member("c"), member("d")), NAMES], BEHIND),
    "topic skew": Situation(
        "the same members have the extra partition",
        [
            written(
                5,
                3,
                [
                    *(member(name, {topic: [at] for topic in "tuv"}, "tuv") for at, name in enumerate("ab")),
                    member("c", {}, "tuv"),
                ],
            ),
            sampled(9_000, t=2, u=2, v=2),
        ],
    ),
    "empty": Situation("the last member left, and records wait", [*STABLE, emptied(7, 4)], BEHIND),
    "deleted": Situation("the tombstone of the group was read", [*STABLE, tombstoned(7)]),
    "deleted, commits go on": Situation(
        "a client uses the group id with assign()",
        [*STABLE, tombstoned(7)],
        BEHIND,
        listed=listed("Empty", protocol_type=""),
    ),
    "commits only": Situation(
        "assign() in the Java client: 404 on page and API, lag in /metrics",
        committed=BEHIND,
        listed=listed("Empty", protocol_type=""),
    ),
    "commits only, not listed": Situation("the permission to list the group is missing", committed=BEHIND),
    "commits only, blocked": Situation("an open transaction blocks its commits", committed=BEHIND, is_blocked=True),
    "blocked": Situation(
        "an open transaction hides the last records",
        STABLE,
        BEHIND,
        conditions=(STORM,),
        is_blocked=True,
        is_later_than_records=True,
    ),
    "stale sample": Situation(
        "brokers have not answered for minutes", STABLE, BEHIND, conditions=(STORM,), sampled_ago_ms=300_000
    ),
    "preparing a rebalance": Situation(
        "only the listing shows the state",
        STABLE,
        BEHIND,
        listed=listed("PreparingRebalance"),
        is_later_than_records=True,
    ),
    "polled in mid-rebalance": Situation(
        "the coordinator returns no assignment",
        [answered(7, classic(classic_member("a", [0]), state="PreparingRebalance"))],
    ),
    "reconciling": Situation("KIP-848: members move to their targets", TARGETS, {("orders", 0): 4}),
    "assigning": Situation("KIP-848: the coordinator is making the assignment", TARGETS[:-3]),
    "reconciled": Situation(
        "KIP-848: all members have their targets",
        [*TARGETS, current(10, held=(("id", (0,)),), number=4), current(11, "n", (("id", (1,)),), number=4)],
        {("orders", 0): 4, ("orders", 1): 100},
    ),
    "reconciling to an unfair target": Situation(
        "KIP-848: before, /metrics had rebalancing, page and table had drift",
        [
            *formed(0),
            known(orders=2),
            joined(5, "n", modern_member(server_assignor="range")),
            joined(6, "m", modern_member(server_assignor="range")),
            epoch(7, 4),
            target(8, held=(("id", (0, 1)),)),
            target(9, "n", ()),
            target_epoch(10, 4),
        ],
    ),
    "assignor reported": Situation(
        "KIP-848: the coordinator reports an assignor, and no member names one",
        [*formed(0), known(orders=2), AssignorReported(3, "uniform"), *TARGETS[6:]],
        {("orders", 0): 4},
    ),
    "assignor reported after the last record": Situation(
        "KIP-848: only the rows have no strategy",
        [*CROSSED, AssignorReported(4, "range")],
        is_later_than_records=True,
    ),
    "a different assignor reported": Situation(
        "KIP-848: a broker restarted with a different default",
        [*CROSSED, AssignorReported(4, "range"), AssignorReported(4, "uniform")],
        is_later_than_records=True,
    ),
    "half known": Situation("records of a KIP-848 group were compacted", [epoch(0, 3)]),
    "share group": Situation("members share partitions", formed(0, group_type=SHARE)),
    "streams group": Situation(
        "only a listing has its state", formed(0, group_type=STREAMS), listed=listed("NotReady", STREAMS, "streams")
    ),
    "late streams group": Situation(
        "its records contain tasks, so no owner is known",
        [
            joined(0, member=modern_member(()), group_type=STREAMS),
            epoch(1, group_type=STREAMS),
            target(2, held=(), group_type=STREAMS),
            target_epoch(3, group_type=STREAMS),
            current(4, held=(), group_type=STREAMS),
        ],
        BEHIND,
        listed=listed("Stable", STREAMS, "streams"),
        late_for_samples=3,
    ),
    "Kafka Streams": Situation(
        "the group assigns tasks, not partitions", [generation([A, B], protocol="stream"), NAMES], BEHIND
    ),
    "Kafka Connect": Situation("the group assigns no partitions", [generation([A], protocol_type="connect")]),
    "unknown strategy": Situation(
        "the monitor does not know `mine`", [generation([A, B], protocol="mine"), NAMES], BEHIND
    ),
    "assignment undecodable": Situation(
        "the assignment of one member", [of(A, without(B, "assignment")), NAMES], BEHIND
    ),
    "subscription undecodable": Situation(
        "the subscription of one member", [of(A, without(B, "subscription")), NAMES], BEHIND
    ),
    "record undecodable": Situation(
        "the last record is in quarantine",
        [*STABLE, DecodeFailed(Position(0, 7, 7), CLASSIC, "group", "")],
        BEHIND,
    ),
    "topic sizes unknown": Situation("the topic was not sampled yet", STABLE[:1], BEHIND),
    "no owner": Situation("one partition has no owner, and records wait", [of(A, member("b")), NAMES], BEHIND),
    "two owners": Situation("one partition has two owners", [of(A, member("b", {"orders": [1, 2]})), NAMES], BEHIND),
    "not subscribed": Situation(
        "the owner does not subscribe to the topic",
        [of(A, member("b", {"orders": [2]}, ("t",))), sampled(9_000, orders=3, t=0)],
        BEHIND,
    ),
    "topic deleted": Situation("the topic was deleted after the commit", STABLE, BEHIND, topics={"orders": None}),
    "no leader": Situation(
        "one partition has no leader, so its end offset is unknown",
        STABLE,
        BEHIND,
        ends={("orders", 0): 100, ("orders", 1): 100},
    ),
    "records lost": Situation(
        "retention deleted unread records", STABLE, BEHIND, starts={("orders", number): 60 for number in range(3)}
    ),
    "commits only, stale sample": Situation(
        "its commits are in the log, so 404 would be wrong", committed=BEHIND, sampled_ago_ms=300_000
    ),
    "storm": Situation("a condition is active", STABLE, CAUGHT_UP, conditions=(STORM,)),
    "failed rebalance": Situation(
        "a member joined and never synced, and no offset is missing", [*STABLE, written(7, 6, [A, B])], CAUGHT_UP
    ),
    "static member": Situation(
        "a static member returned with a new member id",
        [
            of(member("a", {"orders": [0, 1]}, instance_id="pod-0"), B),
            NAMES,
            written(7, 3, [member("a2", {"orders": [0, 1]}, instance_id="pod-0"), B]),
        ],
        BEHIND,
    ),
}
