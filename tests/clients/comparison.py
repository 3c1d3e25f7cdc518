"""Compares the values that the monitor shows of a group with values computed from Kafka's own responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.clients.groups import GroupPlan
from tests.clients.observed import KafkaState, MonitorOutput, Position, Row, position
from tests.clients.recount import (
    FOLLOWUP,
    GONE,
    GROWN,
    JOINED,
    UNEXPLAINED,
    Generation,
    Partition,
    broken_rules,
    count_moves,
    handed_over,
    lags,
    newly_assigned_topics,
    proven_causes,
    remove_partitions,
    unequal_shares,
    withheld_partitions,
)
from tests.end_to_end.group_description import differences as description_differences

_EVALUATED_STRATEGIES = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"})
_VALID_VERDICTS = ("match", "equivalent")
_UNKNOWN = "unknown"
_DIFFERS = "differs_from_java"


@dataclass(frozen=True)
class Difference:
    """One value that differs from the expected value."""

    name: str
    expected: object
    actual: object

    def __str__(self) -> str:
        """Return the difference in one line."""
        return f"{self.name}: expected {_shorten(self.expected)}, shown {_shorten(self.actual)}"


@dataclass(frozen=True)
class GroupComparison:
    """One group after a step: Kafka's responses before and after the step, and the monitor's output after it.

    Attributes:
        partitions: the group's topics with their partition counts.
        grew: True if one of these topics got more partitions in this step.
        since: the position of the group's last record before the step, None before the first step.

    """

    plan: GroupPlan
    partitions: Mapping[str, int]
    grew: bool
    before: KafkaState | None
    now: KafkaState
    since: Position | None
    shown: MonitorOutput

    def differences(self) -> list[Difference]:
        """Return all differences."""
        found = [
            *self._description(),
            *self._members(),
            *self._offsets(),
            *self._verdict(),
            *self._each_rebalance(),
            *self._step(),
        ]
        return [one for one in found if one.expected != one.actual]

    def _description(self) -> Iterator[Difference]:
        differing = description_differences(self.now.described, self.shown.shows, self.plan.name)
        yield Difference("group_generations", [], differing)

    def _members(self) -> Iterator[Difference]:
        api, generation, keys = self.shown.api, self.now.generation, self.now.member_keys()
        yield Difference("state in the API", self.now.described.state, api["state"])
        yield Difference(
            "members in the API",
            {
                member_id: (generation.members[key].held, generation.members[key].topics)
                for member_id, key in keys.items()
            },
            {
                member["member_id"]: (
                    frozenset((at["topic"], at["partition"]) for at in member["assigned"] or ()),
                    frozenset(member["subscribed_topics"] or ()),
                )
                for member in api["members"]
            },
        )
        per_topic = self.shown.shows.metrics.get("rebalance_monitor_member_partitions", {})
        held = [(dict(labels), int(value)) for labels, value in per_topic.items()]
        yield Difference(
            "rebalance_monitor_member_partitions",
            {
                (member_id, topic): sum(at[0] == topic for at in generation.members[key].held)
                for member_id, key in keys.items()
                for topic in sorted({at[0] for at in generation.members[key].held})
            },
            {
                (labels["member"], labels["topic"]): count
                for labels, count in held
                if labels["group"] == self.plan.name and count
            },
        )

    def _offsets(self) -> Iterator[Difference]:
        commits, late = self.now.commits, lags(self.now.commits, self.now.ends)
        yield Difference("kafka_consumergroup_current_offset", commits, self.shown.shows.commits(self.plan.name))
        yield Difference("kafka_consumergroup_lag", late, self.shown.by_partition("kafka_consumergroup_lag"))
        shown_sum = self.shown.shows.value("rebalance_monitor_group_lag", self.plan.name)
        yield Difference("rebalance_monitor_group_lag", sum(late.values()) if late else None, shown_sum)
        yield Difference("lag in the table group_lag", late, self.shown.last_lags())
        owners = self._owner_names()
        yield Difference(
            "partitions in the API (committed, end, lag, owner)",
            {at: (commits[at], self.now.ends[at], late[at], owners.get(at)) for at in commits},
            {
                (one["topic"], one["partition"]): (
                    one["committed_offset"],
                    one["end_offset"],
                    one["lag"],
                    one["owner"],
                )
                for one in self.shown.api["partitions"]
            },
        )

    def _owner_names(self) -> dict[Partition, str]:
        """Map partitions to their owner's name in all outputs: the instance id, or client id and host."""
        return {
            at: member.group_instance_id or f"{member.client_id}@{member.client_host.removeprefix('/')}"
            for member in self.now.described.members.values()
            for at in member.assignment or ()
        }

    def _verdict(self) -> Iterator[Difference]:
        api, generation = self.shown.api, self.now.generation
        if not generation.members:
            return
        broken = broken_rules(generation, self.partitions)
        yield Difference("unowned partitions", len(broken.unassigned), api["unowned_partitions"])
        yield Difference("partitions owned twice", len(broken.assigned_twice), api["owned_twice_partitions"])
        yield Difference("not subscribed", len(broken.not_subscribed), api["not_subscribed_partitions"])
        # A leader may have known fewer partitions, if these are younger than its metadata can be. Then the record's
        # final verdict leaves them out. The monitor still shows them as partitions without an owner.
        open_rule = bool(broken.unassigned)
        if open_rule and "unassigned" not in api["violations"]:
            broken = replace(broken, unassigned=frozenset())
        unequal = unequal_shares(generation)
        names = [*broken.names(), *(["unbalanced"] if unequal else [])]
        evaluated = generation.strategy in _EVALUATED_STRATEGIES
        differs = self.plan.static and any(
            self.plan.strategy in library.different_static_order for library in self.plan.libraries
        )
        valid = (_UNKNOWN,) if open_rule else (*_VALID_VERDICTS, *([_DIFFERS] if differs else []))
        allowed = ("drift",) if names else valid if evaluated else ("not_evaluated",)
        verdict = api["verdict"]
        shown = (verdict, api["verdict_reason"], api["violations"])
        yield Difference("verdict", allowed, allowed if verdict in allowed else shown)
        yield Difference("broken rules", names, list(api["violations"]))
        drifting = len(broken.unassigned | broken.assigned_twice | broken.not_subscribed) + unequal
        counts = bool(names) or (evaluated and not open_rule and verdict != _DIFFERS)
        yield Difference("drift partitions", drifting if counts else None, api["drift_partitions"])
        labels = self.shown.shows.labels("rebalance_monitor_assignment_verdict", self.plan.name)
        yield Difference("verdict in /metrics", [verdict], [one["verdict"] for one in labels])
        stored = self.shown.own_verdict()
        yield Difference("verdict in assignment_drift", verdict, stored and stored["verdict"])
        leaders = {"broker"} if self.plan.is_consumer_protocol else {one.name for one in self.plan.libraries}
        assigned_by = api["assigned_by"]
        yield Difference("assigned by", assigned_by if assigned_by in {*leaders, "unknown"} else leaders, assigned_by)

    def _each_rebalance(self) -> Iterator[Difference]:
        """Compare each row of `rebalances` that is new in this step with its generation and the previous one."""
        reference = before = None
        blocked: frozenset[Partition] = frozenset()
        for row in self.shown.rebalances:
            now = self.shown.generations.get(position(row))
            if now is None:
                yield Difference(f"generation {row['generation_id']}", "a row in group_generations", None)
                continue
            to_hand_over: frozenset[Partition] = frozenset()
            if before is not None and reference is not None and row["kind"] == "rebalance":
                to_hand_over = withheld_partitions(before, now)
                if self._is_new(row):
                    expected = None if to_hand_over else count_moves(reference, now)
                    handed = handed_over(blocked, reference, now)
                    yield from _row_differences(row, before, now, handed, expected)
                    yield _row_difference(row, "withheld_partitions", len(to_hand_over))
            reference = reference if to_hand_over else now
            before, blocked = now, to_hand_over

    def _step(self) -> Iterator[Difference]:
        """Compare the causes and moves of the step's rebalances with the members before and after the step."""
        if self.before is None:
            return
        new = [row for row in self.shown.rebalances if self._is_new(row)]
        named = {cause for row in new for cause in row["causes"] or ()}
        before, now = self.before.generation, self.now.generation
        required = {
            *([JOINED] if now.members.keys() - before.members.keys() else ()),
            *([GONE] if before.members.keys() - now.members.keys() else ()),
            *([GROWN] if self.grew else ()),
        }
        yield Difference("causes in this step", sorted(required), sorted(named.intersection(required)))
        learned = {GROWN} if now.topics() - before.topics() or self._leader_assigned_topic_late() else set()
        possible = {JOINED, GONE, FOLLOWUP, UNEXPLAINED, *required, *learned}
        yield Difference("causes that did not occur in this step", [], sorted(named - possible))
        counted = [row["moved_partitions"] for row in new if row["kind"] == "rebalance"]
        counted = [count for count in counted if count is not None]
        net = count_moves(before, now)
        in_between = [self.shown.generations[position(row)] for row in new if position(row) in self.shown.generations]
        # If a partition had no owner in between, no rebalance moved it. An assignment without a previous owner is no
        # move.
        without_owner = {at for generation in in_between for at in before.held() - generation.held()}
        fewest = count_moves(remove_partitions(before, without_owner), now)
        yield Difference("moved partitions in this step, at least", True, sum(counted) >= fewest or (fewest, counted))
        if len(counted) == len(new) == 1:  # the group had no other generation in between
            yield Difference("moved partitions in this step", net, counted[0])
        totals = self.shown.shows.metrics.get("rebalance_monitor_moved_partitions_total", {})
        shown_total = sum(count for labels, count in totals.items() if dict(labels)["group"] == self.plan.name)
        every = sum(row["moved_partitions"] or 0 for row in self.shown.rebalances)
        yield Difference("rebalance_monitor_moved_partitions_total", every, int(shown_total))

    def _leader_assigned_topic_late(self) -> bool:
        """Return whether a leader assigned a topic late, because it does not subscribe to this topic itself."""
        recorded = [(row, self.shown.generations.get(position(row))) for row in self.shown.rebalances]
        return any(
            before is not None and now is not None and self._is_new(row) and newly_assigned_topics(before, now)
            for (_, before), (row, now) in pairwise(recorded)
        )

    def _is_new(self, row: Row) -> bool:
        return self.since is None or position(row) > self.since


def _row_differences(
    row: Row, before: Generation, now: Generation, handed: frozenset[Partition], expected_moves: int | None
) -> Iterator[Difference]:
    named = set(row["causes"] or ())
    # Two rows do not show if a topic grew, so this cause is accepted if the row names it.
    proven = proven_causes(before, now, handed) | named.intersection({GROWN})
    yield _row_difference(row, "causes", sorted(proven or {UNEXPLAINED}), sorted(named))
    yield _row_difference(row, "moved_partitions", expected_moves)
    yield _row_difference(row, "members", len(now.members))
    fewest = row["fewest_moves"]
    is_possible = fewest is None or 0 <= fewest <= (row["moved_partitions"] or 0)
    yield _row_difference(row, "fewest_moves", fewest if is_possible else "at most moved_partitions", fewest)


_SHOWN_IN_ROW = object()


def _row_difference(row: Row, name: str, expected: object, actual: object = _SHOWN_IN_ROW) -> Difference:
    shown = row[name] if actual is _SHOWN_IN_ROW else actual
    return Difference(f"{name} of generation {row['generation_id']} ({row['kind']})", expected, shown)


def _shorten(value: object) -> str:
    """Return the value as text of at most 1,500 characters."""
    text = repr(value)
    return text if len(text) <= 1500 else f"{text[:1500]}…"
