"""A cluster with typical problems: groups with records, commits and samples over two minutes, and tables.

The monitor's own code creates all values. Only the broker and Spark are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from assignors import BUILT_IN, GroupSpec, MemberSubscription, PartitionAssignor, TopicPartition
from streaming.combine.gaps import ALL_COMMITTED, CommitGap, GapTotals, add_to_totals
from streaming.combine.partition_state import GapsClosed
from streaming.delta.rows import arrow_table
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY, REBALANCES, Table
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.condition_words import describe_condition
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.incidents.evidence import GroupSurroundings, evidence_of
from streaming.evaluation.incidents.tracker import SampledEvidence, advance_incidents
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.rates import CommitPoints, known_produce_rates
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.commit_windows import CommitWindows
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.rebalances.condition_detectors import Limits, conditions
from streaming.events import GroupEvent, GroupMetadataWritten, Position, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from streaming.run.samples.lag.work_watch import WorkWatch
from streaming.state.monitor_state import MonitorState
from tests.streaming.table_rows import update_rows

CLUSTER = "prod-eu"
NOW_MS = 1_795_300_000_000
TOPICS = {"orders": 12, "payments": 12, "shipments": 6, "clicks": 24, "audit": 3}
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
ROUNDS, ROUND_MS = 12, 10_000
PARTITIONS = 50

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert('x')",
    "a/b/../c",
    "..",
    ".",
    "{{ 7 * 7 }}{% raw %}",
    "ünïcode 🚀 グループ",
    "\ud800 lone surrogate",
    "\u202egnp.exe",
    "line\nfeed\ttab\x1b[2J\0",
    "100%25?x=1#y&z;",
    " ",
)
"""Group names that Kafka allows and that could break a page."""
HOSTILE_GROUP = "hostile-clients"
"""A group whose topics, client ids and client hosts are the hostile names."""


@dataclass(frozen=True)
class Member:
    """A member of a generation. Without `held`, the strategy computes its partitions.

    The client id is the part of the name before the last hyphen. Without `host`, the host depends on the name.
    """

    name: str
    topics: Sequence[str]
    instance_id: str | None = None
    held: Mapping[str, Sequence[int]] | None = None
    host: str | None = None

    def with_share(self, share: Iterable[tuple[str, int]]) -> ClassicMember:
        """Return the member as the coordinator records it."""
        held = share if self.held is None else [(topic, number) for topic, of in self.held.items() for number in of]
        own = crc32(self.name.encode(errors="replace")) * 97 % 16**12
        return ClassicMember(
            member_id=f"{self.name}-7f3a9c2e-41d8-4b6e-9d57-{own:012x}",
            group_instance_id=self.instance_id,
            client_id=self.name.rpartition("-")[0] or self.name,
            client_host=f"/{self.host or f'10.4.{len(self.name)}.{ord(self.name[-1])}'}",
            rebalance_timeout_ms=300_000,
            session_timeout_ms=45_000,
            subscription=Subscription(3, tuple(self.topics), None, (), -1, None),
            assignment=Assignment(3, tuple(held), None),
        )


def generation(number: int, ago_seconds: float, protocol: str, members: Sequence[Member]) -> GroupEvent:
    """Return the record of a generation. The strategy assigns partitions to members without `held`."""
    bare = [member.with_share(()) for member in members]
    share: Mapping[str, Sequence[tuple[str, int]]] = {}
    if bare:
        subscribed = tuple(MemberSubscription(one.member_id, one.subscription.topics) for one in bare)  # type: ignore[union-attr]
        share = BUILT_IN[protocol].assign(GroupSpec(subscribed, TOPICS)).members
    whole = [member.with_share(share[one.member_id]) for member, one in zip(members, bare, strict=True)]
    metadata = GroupMetadata(
        group_id="any",
        protocol_type="consumer",
        generation_id=number,
        protocol=protocol if whole else None,
        leader=whole[0].member_id if whole else None,
        current_state_timestamp_ms=None,
        members=tuple(whole),
        value_version=3,
    )
    return GroupMetadataWritten(Position(0, number, NOW_MS - int(1000 * ago_seconds)), metadata)


def append(tables: Path, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a table as the monitor does."""
    arrow_rows = arrow_table(table, [dict(row) for row in rows])
    write_deltalake(str(tables / table.name), arrow_rows, mode="append", partition_by=list(PARTITIONED_BY))


def record_of(
    group_id: str, events: Iterable[GroupEvent], tables: Path | None = None, own: Sequence[PartitionAssignor] = ()
) -> GroupState:
    """Apply the events, one batch each, and return the group's state.

    With `tables`, the group's generations and rebalances are also written. `own` are users' strategies.
    """
    strategies = [*(BUILT_IN[name] for name in STRATEGIES), *own]
    sampled = TopicsSampled({topic: TopicMetadata(count, NOW_MS - 10**9) for topic, count in TOPICS.items()})
    record, updates = GroupState(GroupSnapshot(group_id)), []
    for event in events:
        updates.append(apply_batch(record, [event], strategies))
        updates.append(apply_batch(updates[-1].record, [sampled], strategies))
        record = updates[-1].record
    if tables is not None and group_id.isprintable():
        rows = update_rows(CLUSTER, updates, {})
        for table in (REBALANCES, GROUP_GENERATIONS):
            append(tables, table, rows[table])
    return record


def active_conditions(record: GroupState) -> Iterator[Condition]:
    """Return the conditions that are active now. Each starts at the group's last record."""
    recent = record.rebalance_history.recent
    for name in conditions(recent, NOW_MS, Limits()):
        yield Condition(name, recent[-1].timestamp_ms, describe_condition(name, recent, NOW_MS, Limits()))


@dataclass
class Commits:
    """The commits of a group: `each_round` records per round and partition, `behind` records after the end offset."""

    topics: Sequence[str]
    each_round: int = 100
    behind: int = 0
    until_round: int = ROUNDS
    reset_at_round: int | None = None

    def offset(self, number: int) -> int:
        """Return the committed offset after a round."""
        reached = min(number, self.until_round)
        if self.reset_at_round is not None and number >= self.reset_at_round:
            return 10 * (number - self.reset_at_round + 1)
        return 5_000 + self.each_round * reached - self.behind


def simulate(
    commits: Mapping[str, Commits],
) -> tuple[ClusterSample, LagEvaluation, Mapping[TopicPartition, float]]:
    """Simulate two minutes of records, commits and samples. Return the last sample, the lag and the rates."""
    keys = [
        (group, topic, number)
        for group, of in commits.items()
        for topic in of.topics
        for number in range(TOPICS[topic])
    ]
    windows = CommitWindows(length=10, slot_ms=1000)
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    points, rows, table, sample = CommitPoints(), np.arange(len(keys)), pa.table({}), ClusterSample(0)
    for number in range(ROUNDS + 1):
        at_ms = NOW_MS - 2_000 - ROUND_MS * (ROUNDS - number)
        sample = ClusterSample(
            sampled_at_ms=at_ms,
            topics={topic: TopicMetadata(count, at_ms) for topic, count in TOPICS.items()},
            end_offsets={
                (topic, index): 5_000 + 100 * number for topic, count in TOPICS.items() for index in range(count)
            },
            log_start_offsets={(topic, index): 0 for topic, count in TOPICS.items() for index in range(count)},
            offsets_topic={index: LogEnds(1_000, 1_000) for index in range(PARTITIONS)},
            offsets_topic_partitions=PARTITIONS,
            offsets_topic_leaders=dict.fromkeys(range(PARTITIONS), 1),
        )
        ends.add(sample.end_offsets, at_ms)
        starts.add(sample.log_start_offsets, at_ms)
        offsets = np.array([commits[group].offset(number) for group, _, _ in keys], dtype=np.int64)
        commit_ms = [at_ms - 500 - ROUND_MS * max(0, number - commits[group].until_round) for group, _, _ in keys]
        is_new = np.array([number <= commits[group].until_round for group, _, _ in keys], dtype=bool)
        windows.put(rows[is_new], offsets[is_new], np.array(commit_ms)[is_new], np.full(is_new.sum(), number))
        windows.observe(rows, np.full(len(keys), number), offsets, np.full(len(keys), 5_000 + 100 * number))
        points.add(rows, offsets, np.array(commit_ms, dtype=np.int64), at_ms, np.full(len(keys), at_ms))
        columns = [*zip(*keys, strict=True)] or [[], [], []]
        table = pa.table(
            [pa.array(column) for column in (*columns, offsets, commit_ms)], schema=pa.schema(list(LAG_SCHEMA)[:5])
        )
    report = lag_report(table, sample)
    read_up_to_ms = np.full(len(keys), sample.sampled_at_ms)
    seen = windows.as_of(rows, np.full(len(keys), ROUNDS))
    consumed = points.rates(rows, read_up_to_ms)
    lag = evaluate_lag(report, ends, starts, seen, pa.array(read_up_to_ms), consumed=consumed)
    return sample, lag, known_produce_rates(ends, sample.sampled_at_ms)


@dataclass
class Scene:
    """A monitor state, its tables and the names of its groups."""

    monitor_state: MonitorState
    tables: Path
    groups: Sequence[str] = field(default_factory=list)


def _gaps_of(group_id: str, *gaps_ms: int) -> GapsClosed:
    """Return the event of a partition state that reports these commit gaps of a group, in order."""
    gaps = tuple(
        CommitGap(
            group_id, Position(0, number, NOW_MS), number, gap_ms, None, None, None, None, 0, None, 0, ALL_COMMITTED
        )
        for number, gap_ms in enumerate(gaps_ms)
    )
    return GapsClosed(gaps, {group_id: reduce(add_to_totals, gaps, GapTotals())})


WIDE = ("orders", "payments", "shipments")


def _events_by_group() -> dict[str, list[GroupEvent]]:
    """Return the events of each group, the oldest first."""
    pods = [Member(f"billing-{letter}", WIDE) for letter in "abcde"]
    greedy = {"orders": range(12), "payments": range(12), "shipments": range(6)}
    events_by_group: dict[str, list[GroupEvent]] = {
        "billing": [
            generation(1, 7200, "range", pods[:3]),
            generation(2, 3600, "range", pods[:4]),
            generation(3, 1500, "range", pods),
        ],
        "fraud-detection": [
            generation(11, 4000, "range", [Member("fraud-a", WIDE), Member("fraud-b", WIDE)]),
            generation(12, 900, "range", [Member("fraud-a", WIDE, held=greedy), Member("fraud-b", WIDE, held={})]),
        ],
        "clickstream": [
            generation(
                40 + number,
                500 - 60 * number,
                "range",
                [Member("clicks-a", ["clicks"]), Member("clicks-b", ["clicks"])][: 1 + number % 2],
            )
            for number in range(8)
        ],
        "audit-export": [
            generation(5, 86_000, "roundrobin", [Member(f"audit-{letter}", ["audit"]) for letter in "abcde"])
        ],
        "ledger": [
            generation(
                9, 50_000, "sticky", [Member(f"ledger-{index}", ["payments"], f"ledger-{index}") for index in range(4)]
            )
        ],
        "search-index": [
            generation(3, 40_000, "roundrobin", [Member(f"index-{letter}", ["orders", "clicks"]) for letter in "abc"])
        ],
        "reporting": [generation(2, 90_000, "range", [Member("report-a", WIDE)]), generation(3, 20_000, "range", [])],
    }
    events_by_group.update(
        {
            name: [generation(1, 9_000, "roundrobin", [Member("x-a", ["audit"]), Member("x-b", ["audit"])])]
            for name in HOSTILE_NAMES
        }
    )
    return events_by_group


def add_hostile_group(monitor_state: MonitorState, tables: Path) -> None:
    """Add the group with hostile topics, client ids and client hosts. Tables cannot contain lone surrogates."""
    storable = [name for name in HOSTILE_NAMES if "\ud800" not in name]
    for group_id, names, folder in ((HOSTILE_GROUP, storable, tables), ("surrogates", HOSTILE_NAMES, None)):
        members = [Member(f"{name}-a", [name], held={name: [0, 1]}, host=name) for name in names]
        events = [generation(1, 3_000, "range", members[1:]), generation(2, 1_000, "range", members)]
        monitor_state.put_batch([record_of(group_id, events, folder)], [])


def put_incidents(monitor_state: MonitorState) -> None:
    """Form the incidents of the groups as they are now."""
    reports = monitor_state.reports(monitor_state.view(), is_fresh=True)
    facts = [one for report in reports.values() for one in evidence_of(report, GroupSurroundings(), NOW_MS - 2_000)]
    monitor_state.put_incidents(advance_incidents((), SampledEvidence(CLUSTER, NOW_MS - 2_000, facts)).open)


def scene(tables: Path) -> Scene:
    """Return groups with all kinds of trouble, and one group for each hostile name."""
    events_by_group = _events_by_group()
    commits = {
        "billing": Commits(WIDE, behind=40),
        "fraud-detection": Commits(WIDE, each_round=20),
        "clickstream": Commits(["clicks"], each_round=60),
        "audit-export": Commits(["audit"]),
        "ledger": Commits(["payments"], until_round=1),
        "search-index": Commits(["orders", "clicks"], reset_at_round=9),
        "reporting": Commits(WIDE, each_round=0),
    }
    monitor_state = MonitorState()
    monitor_state.put_batch([record_of(name, events, tables) for name, events in events_by_group.items()], [])
    monitor_state.put_health(positions=dict.fromkeys(range(PARTITIONS), 1_000))
    sample, lag, rates = simulate(commits)
    monitor_state.put_sample(sample, lag)
    # Records and tables cannot contain a lone surrogate.
    printable = {name: record for name, record in monitor_state.view().groups.items() if name.isprintable()}
    view = replace(monitor_state.view(), groups=printable)
    shares, _ = WorkWatch(CLUSTER).measure(view, lag, rates)
    monitor_state.put_work(shares)
    monitor_state.put_gap_totals([_gaps_of("billing", 3_100, 7_800), _gaps_of("clickstream", 65_000, *[4_000] * 7)])
    monitor_state.put_conditions(
        {
            name: held
            for name, record in monitor_state.view().groups.items()
            if (held := tuple(active_conditions(record)))
        }
    )
    monitor_state.put_health(ready=True, was_ready=True)
    put_incidents(monitor_state)
    return Scene(monitor_state, tables, sorted(events_by_group))
