"""All groups' conditions at one sample, and since when each holds.

Rules:

1. Every condition of every group that lives is evaluated anew at each sample, as of the time up to which the group's
   partition was read or its coordinator was asked: "now". Without that, and while an open transaction holds the
   group's partition back, nothing of the group is known.
2. A condition *begins* at the first "now" at which it holds, and *ends* at the first at which it does not. Where it is
   not known whether it holds, it neither begins nor ends, and is not shown meanwhile. Its group's end is its end.
3. What was told before a restart (`restore`) goes on; the time it began at is kept.
4. Words are those of the last sample at which it held: what ended is told with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from assignors import TopicPartition
from streaming.evaluation.conditions.condition_words import words_for
from streaming.evaluation.conditions.reconciliation import (
    STUCK_RECONCILIATION,
    Lagging,
    allowed_ms,
    lagging_members,
    stuck_members,
)
from streaming.evaluation.conditions.silence import (
    SILENT_GROUP,
    SILENT_STATIC_MEMBER,
    STUCK_REBALANCE,
    GroupCommits,
    OwnedPartitions,
    PartitionCommits,
    Silence,
    is_silent,
    silent_static_owners,
    why_silent,
)
from streaming.evaluation.conditions.unowned import UnownedNow, is_unknown
from streaming.evaluation.conditions.unowned import in_full as unowned_in_full
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.phrases import counted, in_words, members_named
from streaming.evaluation.rebalances.detectors import UNOWNED_PARTITIONS, Limits, conditions, same_until_ms
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.group.listing import GroupListing
from streaming.group.members import member_name, members
from streaming.group.snapshot import DEAD, EMPTY, GroupSnapshot
from streaming.protocol.modern import ModernMember


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that holds: its name, since when, and words a person reads."""

    name: str
    since_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """A condition began to hold, or does no more. `read_up_to_ms` is "now" (rule 1), None of a group that is gone."""

    group_id: str
    condition: Condition
    active: bool
    read_up_to_ms: int | None


@dataclass(frozen=True, slots=True)
class ConditionInputs:
    """What conditions are evaluated from at one sample.

    `now_ms` is by partition of `__consumer_offsets` (-1: of groups that are asked for) the time up to which it was
    read; a partition that is held back is left out. `unowned` are by group the partitions without an owner.
    """

    groups: Mapping[str, GroupState]
    now_ms: Mapping[int, int]
    silence: Silence
    listing: GroupListing | None = None
    rebalancing_since_ms: Mapping[str, int] = field(default_factory=dict)
    unowned: Mapping[str, UnownedNow] = field(default_factory=dict)


Key = tuple[str, str]
"""Group id and name of the condition."""


@dataclass(frozen=True, slots=True)
class ConditionEvaluation:
    """What one look found: conditions that hold by group, and what changed since the last look that was taken."""

    active: Mapping[str, tuple[Condition, ...]]
    changes: tuple[ConditionChange, ...]
    known: Mapping[Key, Condition]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A group's record and what follows from it alone, so that most groups are looked at no further."""

    record: GroupState
    offsets_topic_partition: int | None
    is_reconciling: bool
    owned: OwnedPartitions | None
    owned_partitions: int


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a group's last rebalances show, and for how long they do unless there is another one."""

    recent: tuple[RebalanceSummary, ...]
    from_ms: int
    until_ms: float
    conditions: tuple[str, ...]

    def is_of(self, recent: tuple[RebalanceSummary, ...], now_ms: int) -> bool:
        return self.recent is recent and self.from_ms <= now_ms < self.until_ms


class ConditionTracker:
    """The conditions of all groups. Only the sampler's thread uses it.

    `evaluate` finds the active conditions. `commit` makes them the base of the next comparison.

    So whoever writes changes down takes them when they are written, and not before.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: Mapping[Key, Condition] = {}
        self._seen: dict[str, _Seen] = {}
        self._verdicts: dict[str, _Verdict] = {}
        self._lagging: dict[str, Mapping[str, Lagging]] = {}

    def restore(self, known: Mapping[Key, Condition]) -> None:
        """Take up what was told last (rule 3)."""
        self._known = known

    def commit(self, evaluation: ConditionEvaluation) -> None:
        """What was found is told."""
        self._known = evaluation.known

    def evaluate(self, inputs: ConditionInputs) -> ConditionEvaluation:
        """Judge every group."""
        self._seen = {group_id: self._seen_again(group_id, record) for group_id, record in inputs.groups.items()}
        self._verdicts = {group_id: known for group_id, known in self._verdicts.items() if group_id in self._seen}
        self._lagging = {group_id: known for group_id, known in self._lagging.items() if group_id in self._seen}
        commits = inputs.silence.by_group()
        group_ids = list(self._to_evaluate(inputs, commits))
        one_by_one = _CommitsByPartition(
            inputs.silence, {group_id: self._seen[group_id].owned for group_id in group_ids}
        )
        found = {
            group_id: self._evaluate_group(group_id, inputs, commits.get(group_id), one_by_one)
            for group_id in group_ids
        }
        return self._compare(found, inputs)

    def _seen_again(self, group_id: str, record: GroupState) -> _Seen:
        seen = self._seen.get(group_id)
        return seen if seen is not None and seen.record is record else _seen(record)

    def _now_ms(self, group_id: str, inputs: ConditionInputs) -> int | None:
        partition = self._seen[group_id].offsets_topic_partition
        return None if partition is None else inputs.now_ms.get(partition)

    def _to_evaluate(self, inputs: ConditionInputs, commits: Mapping[str, GroupCommits]) -> Iterator[str]:
        """Groups that may have a condition, or had one. The others cost a comparison each."""
        had_one = {group_id for group_id, _ in self._known}
        silent = inputs.silence.groups_with_a_silent_partition()
        suspects = had_one.union(silent, inputs.rebalancing_since_ms, inputs.unowned)
        for group_id, seen in self._seen.items():
            now_ms = None if seen.offsets_topic_partition is None else inputs.now_ms.get(seen.offsets_topic_partition)
            if now_ms is not None and (
                self._verdict(group_id, now_ms)
                or group_id in suspects
                or seen.is_reconciling
                or (seen.owned is not None and _misses_commits(seen, commits.get(group_id)))
            ):
                yield group_id

    def _verdict(self, group_id: str, now_ms: int) -> tuple[str, ...]:
        recent, known = self._seen[group_id].record.rebalance_history.recent, self._verdicts.get(group_id)
        if known is None or not known.is_of(recent, now_ms):
            until_ms = same_until_ms(recent, now_ms, self._limits)
            known = _Verdict(recent, now_ms, until_ms, conditions(recent, now_ms, self._limits))
            self._verdicts[group_id] = known
        return known.conditions

    def _evaluate_group(
        self, group_id: str, inputs: ConditionInputs, commits: GroupCommits | None, one_by_one: _CommitsByPartition
    ) -> Mapping[str, str | None]:
        """By condition the words for it; None where it is not known whether it holds."""
        seen, now_ms = self._seen[group_id], self._now_ms(group_id, inputs)
        if now_ms is None:
            return {}
        recent = seen.record.rebalance_history.recent
        found: dict[str, str | None] = {
            name: words_for(name, recent, now_ms, self._limits) for name in self._verdict(group_id, now_ms)
        }
        found |= _hanging(seen.record.snapshot, inputs, commits, now_ms, self._limits)
        found |= self._reconciling(seen.record.snapshot, now_ms)
        found |= _unowned(seen.record, inputs, now_ms, self._limits)
        of_partition = one_by_one.of_group(group_id, seen.owned) if seen.owned else None
        if seen.owned and of_partition:
            found |= _static(seen.owned, of_partition, commits, now_ms, self._limits)
        return found

    def _reconciling(self, snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, str]:
        lagging = lagging_members(snapshot, self._lagging.get(snapshot.group_id, {}))
        self._lagging[snapshot.group_id] = lagging
        group = snapshot.modern
        stuck = {} if group is None else stuck_members(group, lagging, now_ms, self._limits)
        if group is None or not stuck:
            return {}
        names = (_name(group.members[member_id]) for member_id in stuck)
        longest = min(stuck, key=lambda member_id: stuck[member_id].since_ms)
        lasts, allowed = now_ms - stuck[longest].since_ms, allowed_ms(group.members[longest], self._limits)
        text = f"{members_named(names)} on the way to the target assignment for at least {in_words(lasts)}"
        return {STUCK_RECONCILIATION: f"{text}, allowed are {in_words(allowed)}"}

    def _compare(self, found: Mapping[str, Mapping[str, str | None]], inputs: ConditionInputs) -> ConditionEvaluation:
        known: dict[Key, Condition] = {}
        active: dict[str, tuple[Condition, ...]] = {}
        begun: list[ConditionChange] = []
        for group_id, of_group in found.items():
            now_ms = self._now_ms(group_id, inputs) or 0
            for name, detail in of_group.items():
                before = self._known.get((group_id, name))
                if detail is None:
                    known.update({(group_id, name): before} if before else {})
                    continue
                condition = Condition(name, before.since_ms if before else now_ms, detail)
                known[group_id, name] = condition
                active[group_id] = (*active.get(group_id, ()), condition)
                begun += [] if before else [ConditionChange(group_id, condition, active=True, read_up_to_ms=now_ms)]
        missing = {key: condition for key, condition in self._known.items() if key not in known}
        unknown = {key: condition for key, condition in missing.items() if self._is_unknown(key[0], inputs)}
        ended = [
            ConditionChange(key[0], condition, active=False, read_up_to_ms=self._ended_at_ms(key[0], inputs))
            for key, condition in missing.items()
            if key not in unknown
        ]
        return ConditionEvaluation(active, (*ended, *begun), {**known, **unknown})

    def _is_unknown(self, group_id: str, inputs: ConditionInputs) -> bool:
        record = inputs.groups.get(group_id)
        return record is not None and not record.snapshot.is_over and self._now_ms(group_id, inputs) is None

    def _ended_at_ms(self, group_id: str, inputs: ConditionInputs) -> int | None:
        return self._now_ms(group_id, inputs) if group_id in self._seen else None


def _seen(record: GroupState) -> _Seen:
    snapshot = record.snapshot
    position = None if snapshot.is_over else snapshot.position
    owned = None if position is None else _owned(snapshot, position.timestamp_ms)
    return _Seen(
        record=record,
        offsets_topic_partition=None if position is None else position.offsets_topic_partition,
        is_reconciling=snapshot.modern is not None and snapshot.modern.unreconciled_members > 0,
        owned=owned,
        owned_partitions=0 if owned is None else sum(map(len, owned.of_member.values())),
    )


def _owned(snapshot: GroupSnapshot, since_ms: int) -> OwnedPartitions | None:
    """What static members have; None where there is none. They have it since the group's last record at the latest."""
    of_member = {
        member.group_instance_id: member.assigned
        for member in members(snapshot)
        if member.group_instance_id is not None and member.assigned
    }
    return OwnedPartitions(of_member, since_ms) if of_member else None


def _misses_commits(seen: _Seen, commits: GroupCommits | None) -> bool:
    """Whether some partition was never committed, which no row of commits shows. Without any commit nobody commits."""
    return commits is not None and commits.partitions < seen.owned_partitions


def _hanging(
    snapshot: GroupSnapshot, inputs: ConditionInputs, commits: GroupCommits | None, now_ms: int, limits: Limits
) -> Mapping[str, str | None]:
    """Rules 11 to 13 of `silence.py`: at most one of the two conditions, both None where nothing is known."""
    group_id, listing = snapshot.group_id, inputs.listing
    listed = listing.groups.get(group_id) if listing else None
    if listing and listed is None and listing.is_complete:
        return {STUCK_REBALANCE: None, SILENT_GROUP: None}
    members_now = 0 if listed and listed.state in {EMPTY, DEAD} else snapshot.member_count()
    since_ms = inputs.rebalancing_since_ms.get(group_id)
    rebalancing_ms = None if since_ms is None or listing is None else listing.sampled_at_ms - since_ms
    silent = is_silent(members_now, commits, now_ms, limits)
    condition = why_silent(silent, listed.state if listed else None, rebalancing_ms, limits)
    if condition is None:
        unknown = {STUCK_REBALANCE: listed is None or silent is None, SILENT_GROUP: silent is None}
        return {name: None for name, is_unknown in unknown.items() if is_unknown}
    if commits is None or not silent:
        return {condition: f"in the middle of a rebalance for at least {in_words(rebalancing_ms or 0)}"}
    text = f"nobody committed for {in_words(now_ms - commits.last_ms)} while records wait and more come"
    shown = f", state {listed.state}" if listed and listed.state else ""
    return {condition: text + shown}


def _unowned(record: GroupState, inputs: ConditionInputs, now_ms: int, limits: Limits) -> Mapping[str, str | None]:
    """Rule 3 of `unowned.py`."""
    group_id = record.snapshot.group_id
    listed = inputs.listing.groups.get(group_id) if inputs.listing else None
    if is_unknown(record, listed.state if listed else None):
        return {UNOWNED_PARTITIONS: None}
    found = inputs.unowned.get(group_id)
    lasting = found.longer_than(now_ms, limits) if found and not (listed and listed.state in {EMPTY, DEAD}) else ()
    return {UNOWNED_PARTITIONS: unowned_in_full(found, lasting, now_ms)} if found and lasting else {}


def _static(
    owned: OwnedPartitions, of_partition: PartitionCommits, commits: GroupCommits | None, now_ms: int, limits: Limits
) -> Mapping[str, str | None]:
    """Rule 14 of `silence.py`."""
    silent = silent_static_owners(owned, of_partition, now_ms, limits)
    if not silent:
        return {SILENT_STATIC_MEMBER: None} if commits is None or commits.wait is None else {}
    partitions = [at for name in silent for at in owned.of_member[name]]
    last_ms = max((of_partition.last_ms.get(at, owned.since_ms) for at in partitions), default=owned.since_ms)
    verb = "commits" if len(silent) == 1 else "commit"
    text = f"static {members_named(silent)} {verb} none of {counted(len(partitions), 'partition')}"
    return {SILENT_STATIC_MEMBER: f"{text} for {in_words(now_ms - last_ms)} while records wait"}


def _name(member: ModernMember) -> str:
    return member_name(member.client_id, member.client_host, member.group_instance_id)


class _CommitsByPartition:
    """Commits of groups with static members, one by one: asked for all at once, for every question reads all rows."""

    def __init__(self, silence: Silence, owned: Mapping[str, OwnedPartitions | None]) -> None:
        self._silence = silence
        self._committed = silence.of_groups([group_id for group_id, of_group in owned.items() if of_group])
        missing = (at for group_id, of_group in owned.items() if of_group for at in self._missing(group_id, of_group))
        self._growing = silence.growing_rows(set(missing))

    def of_group(self, group_id: str, owned: OwnedPartitions) -> PartitionCommits | None:
        """The group's commits; of owned partitions without one, those count that have records to wait for."""
        committed = self._committed.get(group_id)
        if committed is None:
            return None
        rows = {at: self._growing[at] for at in self._missing(group_id, owned) if at in self._growing}
        waiting = {at for at, row in rows.items() if self._silence.waits_since(row, owned.since_ms)}
        return PartitionCommits(committed.last_ms, waiting.union(committed.waiting))

    def _missing(self, group_id: str, owned: OwnedPartitions) -> Iterator[TopicPartition]:
        committed = self._committed.get(group_id)
        if committed is not None:
            yield from (at for has in owned.of_member.values() for at in has if at not in committed.last_ms)
