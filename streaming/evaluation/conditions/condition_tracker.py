"""Evaluate the conditions of all groups once per sample, and store the start time of each active condition.

Rules:

1. At each sample, every condition of every existing group is evaluated again. "Now" is the time up to which the monitor
   has read the group's partition of `__consumer_offsets`. In the polling mode, "now" is the time of the request to the
   group's coordinator. If "now" is unknown, if an open transaction blocks the partition, or if the brokers refuse to
   return the commits of the group (polling mode), all conditions of the group are unknown. "Now" is a time of the
   leader's clock, because the times of the group's records come from this clock. So the times of samples, listings and
   commits are also converted to this clock.
2. A condition starts at the first evaluation that finds it active, and ends at the first evaluation that finds it
   inactive. The start time and the end time are the "now" of these evaluations. An unknown condition neither begins nor
   ends, and is not shown. When a group no longer exists, its conditions end.
3. If the monitor restarts, the reported conditions continue (`restore`). Their start times stay the same.
4. The text of a condition comes from the last sample at which the condition was active. The event that reports the end
   of the condition contains this text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP, long_commit_gap
from streaming.evaluation.conditions.condition_words import describe_condition
from streaming.evaluation.conditions.missing_topics import MissingTopics
from streaming.evaluation.conditions.reconciliation import (
    STUCK_RECONCILIATION,
    LaggingMember,
    allowed_ms,
    lagging_members,
    stuck_members,
)
from streaming.evaluation.conditions.silence import (
    SILENT_GROUP,
    SILENT_STATIC_MEMBER,
    STUCK_REBALANCE,
    CommitsByPartition,
    GroupCommits,
    OwnedPartitions,
    PartitionCommits,
    Silence,
    is_silent,
    silence_condition,
    silent_static_owners,
)
from streaming.evaluation.conditions.unowned import UnownedNow, unowned_condition
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.limits import GroupLimits, LimitsOf, default_limits
from streaming.evaluation.phrases import counted, in_words, members_named
from streaming.evaluation.rebalances.condition_detectors import Limits, conditions, same_until_ms
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.group.listing import GroupListing
from streaming.group.members import member_name, members
from streaming.group.snapshot import DEAD, EMPTY, REBALANCING, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Condition:
    """An active condition: its name, its start time and a text for users."""

    name: str
    since_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class ConditionChange:
    """The start or the end of a condition of a group.

    `read_up_to_ms` is "now" (rule 1). If the group no longer exists, `read_up_to_ms` is None.
    """

    group_id: str
    condition: Condition
    active: bool
    read_up_to_ms: int | None


@dataclass(frozen=True, slots=True)
class ConditionInputs:
    """The inputs of one evaluation. The keys of the last three fields are group ids.

    `now_ms` maps each `__consumer_offsets` partition to the time up to which the partition was read. The key -1 is used
    for groups in the polling mode. Partitions that are blocked by an open transaction are absent. `ahead_ms` contains
    for each partition the time of the leader's clock minus the cluster's time. If a partition is absent, the difference
    is 0. The times of commits in `silence` are already times of the leader's clock. `refused_groups` contains the
    groups whose commits the brokers refuse to return.
    """

    groups: Mapping[str, GroupState]
    now_ms: Mapping[int, int]
    silence: Silence
    ahead_ms: Mapping[int, int] = field(default_factory=dict)
    refused_groups: AbstractSet[str] = frozenset()
    listing: GroupListing | None = None
    rebalancing_since_ms: Mapping[str, int] = field(default_factory=dict)
    unowned: Mapping[str, UnownedNow] = field(default_factory=dict)
    missing_topics: Mapping[str, MissingTopics] = field(default_factory=dict)


Key = tuple[str, str]
"""The id of a group, and the name of a condition."""


@dataclass(frozen=True, slots=True)
class ConditionEvaluation:
    """The result of one evaluation.

    `active` is by group id. `changes` contains the conditions that began or ended since the last call of
    `ConditionTracker.commit`. `known` contains the active conditions, and the conditions that were active before and
    are unknown now.
    """

    active: Mapping[str, tuple[Condition, ...]]
    changes: tuple[ConditionChange, ...]
    known: Mapping[Key, Condition]


@dataclass(frozen=True, slots=True)
class _GroupInputs:
    """The state of a group, and values that depend only on this state.

    A fast check of these values shows whether the group can have a condition. Most groups cannot, so only the other
    groups are evaluated.
    """

    record: GroupState
    offsets_topic_partition: int | None
    is_reconciling: bool
    owned: OwnedPartitions | None
    owned_partitions: int


def _group_inputs(record: GroupState) -> _GroupInputs:
    snapshot = record.snapshot
    position = None if snapshot.is_over else snapshot.position
    of_member = {
        member.group_instance_id: member.assigned
        for member in members(snapshot)
        if member.group_instance_id is not None and member.assigned
    }
    return _GroupInputs(
        record=record,
        offsets_topic_partition=None if position is None else position.offsets_topic_partition,
        is_reconciling=snapshot.modern is not None and snapshot.modern.unreconciled_members > 0,
        owned=OwnedPartitions(of_member, position.timestamp_ms) if position and of_member else None,
        owned_partitions=sum(map(len, of_member.values())),
    )


@dataclass(frozen=True, slots=True)
class _RebalanceConditions:
    """The conditions that a group's last rebalances show, from `from_ms` until `until_ms` (exclusive)."""

    recent: tuple[RebalanceSummary, ...]
    from_ms: int
    until_ms: float
    conditions: tuple[str, ...]


class ConditionTracker:
    """The conditions of all groups. Only the sampler's thread uses `ConditionTracker`.

    The caller writes the changes that `evaluate` returns, and calls `commit` only after a successful write.
    """

    def __init__(self, limits: Limits, limits_of: LimitsOf = default_limits) -> None:
        self._limits = limits
        self._limits_of = limits_of
        self._limits_by_group: Mapping[str, GroupLimits] = {}
        self._known: Mapping[Key, Condition] = {}
        self._groups: dict[str, _GroupInputs] = {}
        self._by_rebalances: dict[str, _RebalanceConditions] = {}
        self._lagging_members: dict[str, Mapping[str, LaggingMember]] = {}
        self._silent: set[str] = set()
        """The groups that were silent when this was last known."""

    @property
    def not_ended(self) -> Iterator[Key]:
        """The conditions that are active, or that were active before and are unknown now (rule 2)."""
        return iter(self._known)

    def restore(self, known: Mapping[Key, Condition]) -> None:
        """Restore the conditions that were reported before a restart of the monitor (rule 3)."""
        self._known = known

    def commit(self, evaluation: ConditionEvaluation) -> None:
        """Mark the changes of an evaluation as reported."""
        self._known = evaluation.known

    def evaluate(self, inputs: ConditionInputs) -> ConditionEvaluation:
        """Evaluate the conditions of every group."""
        self._groups = {group_id: self._inputs_of(group_id, record) for group_id, record in inputs.groups.items()}
        self._limits_by_group = self._limits_of(self._groups)
        self._by_rebalances = {
            group_id: known for group_id, known in self._by_rebalances.items() if group_id in self._groups
        }
        self._lagging_members = {
            group_id: known for group_id, known in self._lagging_members.items() if group_id in self._groups
        }
        self._silent &= self._groups.keys()
        commits = inputs.silence.by_group()
        group_ids = list(self._groups_to_evaluate(inputs, commits))
        owned = {group_id: self._groups[group_id].owned for group_id in group_ids}
        by_partition = CommitsByPartition(inputs.silence, owned)
        details = {
            group_id: self._evaluate_group(group_id, inputs, commits.get(group_id), by_partition)
            for group_id in group_ids
        }
        return self._compare(details, inputs)

    def _inputs_of(self, group_id: str, record: GroupState) -> _GroupInputs:
        group = self._groups.get(group_id)
        return group if group is not None and group.record is record else _group_inputs(record)

    def _now_ms(self, group_id: str, inputs: ConditionInputs) -> int | None:
        partition = self._groups[group_id].offsets_topic_partition
        return None if partition is None or group_id in inputs.refused_groups else inputs.now_ms.get(partition)

    def _ahead_ms(self, group_id: str, inputs: ConditionInputs) -> int:
        partition = self._groups[group_id].offsets_topic_partition
        return 0 if partition is None else inputs.ahead_ms.get(partition, 0)

    def _groups_to_evaluate(self, inputs: ConditionInputs, commits: Mapping[str, GroupCommits]) -> Iterator[str]:
        """Yield the groups that can have a condition now, or had a condition before."""
        had_one = {group_id for group_id, _ in self._known}
        silent = inputs.silence.groups_with_a_silent_partition()
        suspects = had_one.union(silent, inputs.rebalancing_since_ms, inputs.unowned, inputs.missing_topics)
        for group_id, group in self._groups.items():
            now_ms, of_group = self._now_ms(group_id, inputs), commits.get(group_id)
            if now_ms is None:
                continue
            has_gap = of_group is not None and (
                of_group.partitions < group.owned_partitions
                or of_group.wait_seconds > self._limits_by_group[group_id].max_commit_gap_seconds
            )
            is_suspect = group_id in suspects or group.is_reconciling or has_gap
            if self._rebalance_conditions(group_id, now_ms) or is_suspect:
                yield group_id

    def _long_commit_gap(
        self, group_id: str, inputs: ConditionInputs, commits: GroupCommits | None, now_ms: int
    ) -> Mapping[str, str | None]:
        recent = self._groups[group_id].record.rebalance_history.recent
        max_seconds = self._limits_by_group[group_id].max_commit_gap_seconds
        since_ms = inputs.rebalancing_since_ms.get(group_id)
        since_ms = None if since_ms is None else since_ms + self._ahead_ms(group_id, inputs)
        found = long_commit_gap(recent, since_ms, commits, now_ms, self._limits, max_seconds)
        before = self._known.get((group_id, LONG_COMMIT_GAP))
        if found or before is None or now_ms - before.since_ms >= 1000 * self._limits.window_seconds:
            return found
        return {LONG_COMMIT_GAP: before.detail}

    def _rebalance_conditions(self, group_id: str, now_ms: int) -> tuple[str, ...]:
        recent, known = self._groups[group_id].record.rebalance_history.recent, self._by_rebalances.get(group_id)
        if known is None or known.recent is not recent or not known.from_ms <= now_ms < known.until_ms:
            until_ms = same_until_ms(recent, now_ms, self._limits)
            known = _RebalanceConditions(recent, now_ms, until_ms, conditions(recent, now_ms, self._limits))
            self._by_rebalances[group_id] = known
        return known.conditions

    def _evaluate_group(
        self,
        group_id: str,
        inputs: ConditionInputs,
        commits: GroupCommits | None,
        commits_by_partition: CommitsByPartition,
    ) -> Mapping[str, str | None]:
        """Return the text of each condition, by name. The text is None if the state of the condition is unknown."""
        group, now_ms = self._groups[group_id], self._now_ms(group_id, inputs)
        if now_ms is None:
            return {}
        recent, ahead_ms = group.record.rebalance_history.recent, self._ahead_ms(group_id, inputs)
        details: dict[str, str | None] = {
            name: describe_condition(name, recent, now_ms, self._limits)
            for name in self._rebalance_conditions(group_id, now_ms)
        }
        details |= self._silence_conditions(group.record.snapshot, inputs, commits, now_ms)
        details |= self._reconciling(group.record.snapshot, now_ms)
        listed = inputs.listing.groups.get(group_id) if inputs.listing else None
        listed_state = listed.state if listed else None
        unowned, missing = inputs.unowned.get(group_id), inputs.missing_topics.get(group_id)
        details |= unowned_condition(group.record, unowned, listed_state, now_ms)
        if missing and listed_state not in {EMPTY, DEAD}:
            details |= missing.condition(now_ms - ahead_ms, self._limits)
        details |= self._long_commit_gap(group_id, inputs, commits, now_ms)
        by_partition = commits_by_partition.of_group(group_id, group.owned, ahead_ms) if group.owned else None
        if group.owned and by_partition:
            details |= _silent_static_members(group.owned, by_partition, commits, now_ms, self._limits)
        return details

    def _silence_conditions(
        self, snapshot: GroupSnapshot, inputs: ConditionInputs, commits: GroupCommits | None, now_ms: int
    ) -> Mapping[str, str | None]:
        """Evaluate rules 11 to 13 of `silence.py`. At most one of `stuck_rebalance` and `silent_group` is active."""
        group_id, listing = snapshot.group_id, inputs.listing
        listed = listing.groups.get(group_id) if listing else None
        if listing and listed is None and listing.is_complete:
            return {STUCK_REBALANCE: None, SILENT_GROUP: None}
        listed_state = listed.state if listed else None
        members_now = 0 if listed_state in {EMPTY, DEAD} else snapshot.member_count()
        # After a restart, the conditions show which groups were silent.
        was_silent = group_id in self._silent or (group_id, SILENT_GROUP) in self._known
        was_silent = was_silent or ((group_id, STUCK_REBALANCE) in self._known and listed_state is None)
        silent = is_silent(members_now, commits, now_ms, self._limits, was_silent=was_silent)
        if silent is not None:
            (self._silent.add if silent else self._silent.discard)(group_id)
        since_ms = inputs.rebalancing_since_ms.get(group_id)
        rebalancing_ms = None if since_ms is None or not (listing and listed) else listing.sampled_at_ms - since_ms
        condition = silence_condition(silent, listed_state, rebalancing_ms, self._limits)
        if condition is None:
            may_be_stuck = listed is None or silent is None or self._may_be_same_rebalance(snapshot, listed_state)
            unknown = {STUCK_REBALANCE: may_be_stuck, SILENT_GROUP: silent is None}
            return {name: None for name, is_unknown in unknown.items() if is_unknown}
        if commits is None or not silent:
            return {condition: f"rebalance in progress for at least {in_words(rebalancing_ms or 0)}"}
        text = f"no member committed for {in_words(now_ms - commits.last_ms)} while records wait"
        text += " and new records arrive" if commits.wait else ""
        return {condition: text + (f" (group state {listed_state})" if listed_state else "")}

    def _may_be_same_rebalance(self, snapshot: GroupSnapshot, listed_state: str | None) -> bool:
        """Return True if the listed rebalance may be the stuck one from before a restart (rule 12 of `silence.py`)."""
        before, position = self._known.get((snapshot.group_id, STUCK_REBALANCE)), snapshot.position
        has_no_record = position is not None and before is not None and position.timestamp_ms <= before.since_ms
        return has_no_record and listed_state in REBALANCING

    def _reconciling(self, snapshot: GroupSnapshot, now_ms: int) -> Mapping[str, str]:
        lagging = lagging_members(snapshot, self._lagging_members.get(snapshot.group_id, {}))
        self._lagging_members[snapshot.group_id] = lagging
        group = snapshot.modern
        stuck = {} if group is None else stuck_members(group, lagging, now_ms, self._limits)
        if group is None or not stuck:
            return {}
        late = (group.members[member_id] for member_id in stuck)
        names = (member_name(one.client_id, one.client_host, one.group_instance_id) for one in late)
        longest = min(stuck, key=lambda member_id: stuck[member_id].since_ms)
        lasts, allowed = now_ms - stuck[longest].since_ms, allowed_ms(group.members[longest], self._limits)
        verb = "has" if len(stuck) == 1 else "have"
        text = f"{members_named(names)} {verb} not reached the target assignment for at least {in_words(lasts)}"
        return {STUCK_RECONCILIATION: f"{text} (allowed: {in_words(allowed)})"}

    def _compare(self, details: Mapping[str, Mapping[str, str | None]], inputs: ConditionInputs) -> ConditionEvaluation:
        known: dict[Key, Condition] = {}
        active: dict[str, tuple[Condition, ...]] = {}
        begun: list[ConditionChange] = []
        for group_id, by_name in details.items():
            now_ms = self._now_ms(group_id, inputs) or 0
            for name, detail in by_name.items():
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
        return self._now_ms(group_id, inputs) if group_id in self._groups else None


def _silent_static_members(
    owned: OwnedPartitions, by_partition: PartitionCommits, commits: GroupCommits | None, now_ms: int, limits: Limits
) -> Mapping[str, str | None]:
    """Evaluate rule 14 of `silence.py`."""
    silent = silent_static_owners(owned, by_partition, now_ms, limits)
    if not silent:
        return {SILENT_STATIC_MEMBER: None} if commits is None or commits.wait is None else {}
    partitions = [at for name in silent for at in owned.of_member[name]]
    last_ms = max((by_partition.last_ms.get(at, owned.since_ms) for at in partitions), default=owned.since_ms)
    owns, has = ("owns", "has") if len(silent) == 1 else ("own", "have")
    text = f"static {members_named(silent)} {owns} {counted(len(partitions), 'partition')} and {has} not committed"
    return {SILENT_STATIC_MEMBER: f"{text} for {in_words(now_ms - last_ms)} while records wait"}
