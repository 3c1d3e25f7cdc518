"""Find the evidence of a group in its report (rules 1, 2 and 4 of this package)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from streaming.evaluation.causes.cause import NO_MEMBERS, OPEN_TRANSACTION, UNDER_PROVISIONED, UNKNOWN, Cause
from streaming.evaluation.lag.status import Status
from streaming.evaluation.phrases import in_words
from streaming.evaluation.rebalances.condition_detectors import FLAPPING_MEMBER, HARMLESS, REBALANCE_STORM
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.report import GroupReport

Source = Literal["condition", "lag_cause", "loss", "lag", "coordinator"]
Fact = tuple[Source, str, int, str]
"""Source, name, start and text of evidence."""

CONDITION: Final = "condition"
LAG_CAUSE: Final = "lag_cause"
LOSS: Final = "loss"
LAG: Final = "lag"

COORDINATOR_LOSS: Final = "coordinator"

RECORDS_LOST: Final = "records_lost"
LAG_ABOVE_LIMIT: Final = "lag_above_limit"
REWOUND: Final = "rewound"
NO_COORDINATOR: Final = "no_coordinator"

LEADERLESS_MS: Final = 30_000
"""Time without a leader after which a missing coordinator is evidence. A restart of a broker often takes less time."""

LAG_END_RATIO: Final = 0.5
"""The evidence "lag above the limit" ends if the lag in seconds is at most this fraction of the limit (rule 3)."""

MAX_NAMES: Final = 10
"""Maximum number of hosts, and of topics, in one `Evidence`."""

_NAME_MEMBERS: Final = frozenset({REBALANCE_STORM, FLAPPING_MEMBER})


class EvidenceKey(NamedTuple):
    """The identity of evidence: its source, its name and the group."""

    source: Source
    name: str
    group_id: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact about one group.

    `until_ms` is None while the evidence is active. All other fields keep their values from the start (rule 4).
    """

    source: Source
    name: str
    group_id: str
    text: str
    since_ms: int
    until_ms: int | None = None
    coordinator: int | None = None
    is_coordinator_gone: bool = False
    client_hosts: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def key(self) -> EvidenceKey:
        """The identity of the evidence."""
        return EvidenceKey(self.source, self.name, self.group_id)

    @property
    def order(self) -> tuple[int, str, str, str]:
        """The sort key: the earliest evidence comes first."""
        return self.since_ms, self.group_id, self.source, self.name


class Coordinator(NamedTuple):
    """The broker that coordinates a group. `is_gone` is defined in rule 4.

    `leaderless_since_ms` is the time of the first sample in which the group's partition had no leader.
    """

    broker_id: int | None = None
    is_gone: bool = False
    leaderless_since_ms: int | None = None


UNKNOWN_COORDINATOR: Final = Coordinator()


@dataclass(frozen=True, slots=True)
class GroupSurroundings:
    """Inputs about a group that are not in its report: its coordinator, its last rebalances and the affected topics.

    Each key of `topics_by_name` is RECORDS_LOST or the name of a condition.
    """

    coordinator: Coordinator = UNKNOWN_COORDINATOR
    recent: Sequence[RebalanceSummary] = ()
    topics_by_name: Mapping[str, Collection[str]] | None = None


def evidence_of(report: GroupReport, surroundings: GroupSurroundings, sampled_at_ms: int) -> Iterator[Evidence]:
    """Yield the active evidence of a group. Lost records and a lag above the limit start at this sample."""
    if report.limits.ignore_alerts:
        return
    for source, name, since_ms, text in _facts(report, surroundings.coordinator, sampled_at_ms):
        yield Evidence(
            source,
            name,
            report.group_id,
            text,
            since_ms,
            coordinator=surroundings.coordinator.broker_id,
            is_coordinator_gone=surroundings.coordinator.is_gone,
            client_hosts=_hosts(source, name, report, surroundings.recent),
            topics=_topics(source, name, report, surroundings),
        )


def lag_cause_name(kind: str, reason: str) -> str:
    """Return the name of a cause of lag in evidence and metrics: its kind, NO_MEMBERS or OPEN_TRANSACTION.

    These two reasons need different advice than other causes of the same kind.
    """
    return reason if reason in {NO_MEMBERS, OPEN_TRANSACTION} else kind


def has_lag_ended(report: GroupReport) -> bool:
    """Return True if the evidence "lag above the limit" ends (rule 3). The lag of each partition must be known."""
    lag = report.lag
    if lag.seconds is None:
        return not lag.records
    return not lag.seconds_is_bound and lag.seconds <= LAG_END_RATIO * report.limits.max_lag_seconds


def facts_of_late_group(report: GroupReport, sampled_at_ms: int) -> Iterator[Fact]:
    """Yield the facts that become evidence only while the lag is above the limit (rule 2)."""
    if report.cause is not None and report.cause.kind == UNKNOWN:
        yield _cause_fact(report.cause, sampled_at_ms)
    if report.lag.status == Status.REWIND.name:
        text = "rewound: the committed offset of a partition decreased, so the group processes records a second time"
        yield LAG, REWOUND, sampled_at_ms, text
    limit = in_words(1000 * report.limits.max_lag_seconds)
    yield LAG, LAG_ABOVE_LIMIT, sampled_at_ms, f"lag above the limit of {limit}"


def _cause_fact(cause: Cause, sampled_at_ms: int) -> Fact:
    since_ms = sampled_at_ms if cause.since_ms is None else cause.since_ms
    return LAG_CAUSE, lag_cause_name(cause.kind, cause.reason), since_ms, cause.text.removesuffix(".")


def _facts(report: GroupReport, coordinator: Coordinator, sampled_at_ms: int) -> Iterator[Fact]:
    for condition in report.conditions:
        if condition.name not in HARMLESS:
            name = condition.name.replace("_", " ")
            text = f"{name}: {condition.detail}" if condition.detail else name
            yield CONDITION, condition.name, condition.since_ms, text
    if report.cause is not None and report.cause.kind != UNKNOWN:
        yield _cause_fact(report.cause, sampled_at_ms)
    if report.lag.records_lost:
        yield LOSS, RECORDS_LOST, sampled_at_ms, "records lost: retention deleted records that the group had not read"
    if report.is_above_limit:
        yield from facts_of_late_group(report, sampled_at_ms)
    since_ms = coordinator.leaderless_since_ms
    if since_ms is not None and sampled_at_ms - since_ms >= LEADERLESS_MS and report.membership.members:
        text = "no coordinator: the group cannot commit, because its partition of __consumer_offsets has no leader"
        yield COORDINATOR_LOSS, NO_COORDINATOR, since_ms, text


def _hosts(source: Source, name: str, report: GroupReport, recent: Sequence[RebalanceSummary]) -> tuple[str, ...]:
    if source == LAG_CAUSE:
        return (report.cause.client_host,) if report.cause and report.cause.client_host else ()
    if source != CONDITION or name not in _NAME_MEMBERS:
        return ()
    members = (member for rebalance in recent for member in (*rebalance.gone, *rebalance.rejoined))
    hosts = {f"/{host}" for _, at, host in (member.client.rpartition("@") for member in members) if at}
    return tuple(sorted(hosts)[:MAX_NAMES])


def _topics(source: Source, name: str, report: GroupReport, surroundings: GroupSurroundings) -> tuple[str, ...]:
    if source in {CONDITION, LOSS}:
        return tuple(sorted((surroundings.topics_by_name or {}).get(name, ()))[:MAX_NAMES])
    cause = report.cause
    if source == LAG_CAUSE and cause is not None:
        topic = cause.topic or (report.lag.worst_topic if name in {UNDER_PROVISIONED, OPEN_TRANSACTION} else None)
        return (topic,) if topic else ()
    return ()
