"""The steps that each group runs. A step is complete when Kafka's Admin shows the group stable and as expected."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kafka import KafkaAdminClient
from kafka.admin import NewPartitions, NewTopic
from kafka.errors import KafkaError

from tests.clients.groups import (
    FIRST_MEMBERS,
    GROWN_PARTITIONS,
    KILLED_MEMBER,
    LAST_MEMBER,
    RETURNING_MEMBER,
    GroupPlan,
)
from tests.clients.members import JoinCommand, MemberProcesses
from tests.clients.recount import Generation, Share, broken_rules
from tests.end_to_end.group_description import GroupDescription
from tests.end_to_end.monitor_process import until

SETTLING_SECONDS = 120.0
_CALM_SECONDS = 3.0
"""Time that a group must stay stable. A cooperative group is also stable for a short time between two rounds."""


@dataclass
class LiveGroup:
    """A running group: its members, and the current partition counts of its topics.

    Attributes:
        member_numbers: the numbers of the members, including static members that are away.

    """

    plan: GroupPlan
    programs: MemberProcesses
    partitions: dict[str, int]
    member_numbers: set[int] = field(default_factory=set)

    def join(self, *numbers: int) -> None:
        """Start members."""
        for number in numbers:
            joining = JoinCommand(
                self.plan.libraries[number - 1],
                self.plan.strategy,
                self.plan.name,
                self.plan.client_id(number),
                self.plan.topics_of(number),
                self.plan.session_timeout_ms,
                self.plan.instance_id(number),
                to_be_killed=number == KILLED_MEMBER,
            )
            self.programs.join(joining)
            self.member_numbers.add(number)

    def leave(self, number: int) -> None:
        """Stop a member. A dynamic member leaves. A static member is away, and comes back before its session ends.

        A static KIP-848 member counts as gone. Its group stays Reconciling until the member's session ends, a short
        time later.
        """
        self.programs.leave(self.plan.client_id(number))
        if self.plan.instance_id(number) is None or self.plan.is_consumer_protocol:
            self.member_numbers.discard(number)

    def kill(self, number: int) -> None:
        """Kill a member. Kafka removes it when its session has ended."""
        self.programs.kill(self.plan.client_id(number))
        self.member_numbers.discard(number)

    def end(self) -> None:
        """Stop all members."""
        for number in sorted(self.member_numbers):
            self.programs.leave(self.plan.client_id(number))
        self.member_numbers.clear()

    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Return the topics of each member by client id, including static members that are away."""
        return {self.plan.client_id(number): self.plan.topics_of(number) for number in sorted(self.member_numbers)}

    def problem(self, described: GroupDescription) -> str | None:
        """Return the reason why the group is not as expected in Kafka, or None if it is."""
        if failures := [why for client_id in self.subscriptions() if (why := self.programs.failure(client_id))]:
            return "; ".join(failures)
        if not described.settled(len(self.subscriptions())):
            return f"{described.state} with {len(described.members)} members, not {len(self.subscriptions())}"
        return None if self.plan.ignores_subscriptions else self.describe_violations(described)

    def describe_violations(self, described: GroupDescription) -> str | None:
        """Return the rules that the assignment breaks as text, or None if it is valid."""
        topics = self.subscriptions()
        shares = {
            member_id: Share(frozenset(topics.get(member.client_id, ())), member.assignment or frozenset())
            for member_id, member in described.members.items()
        }
        broken = broken_rules(Generation(described.assignor, shares), self.partitions)
        return str(broken) if broken.names() else None


@dataclass(frozen=True)
class Step:
    """One step of a group, with its name."""

    name: str
    action: Callable[[LiveGroup, KafkaAdminClient], None]


def _grow(group: LiveGroup, admin: KafkaAdminClient) -> None:
    topic = group.plan.growing_topic
    admin.create_partitions({topic: NewPartitions(GROWN_PARTITIONS)})
    group.partitions[topic] = GROWN_PARTITIONS


TOPIC_GREW = Step("a topic grew", _grow)
ALL_LEFT = Step("all left", lambda group, _: group.end())
STEPS = (
    Step("three joined", lambda group, _: group.join(*FIRST_MEMBERS)),
    Step("one left", lambda group, _: group.leave(RETURNING_MEMBER)),
    Step("one returned", lambda group, _: group.join(RETURNING_MEMBER)),
    Step("a fourth joined with other topics", lambda group, _: group.join(LAST_MEMBER)),
    TOPIC_GREW,
    Step("one was killed", lambda group, _: group.kill(KILLED_MEMBER)),
)


def create_topics(admin: KafkaAdminClient, plans: Sequence[GroupPlan]) -> None:
    """Create the topics of these groups, and wait until brokers know them, because some libraries fail otherwise."""
    wanted = {topic: count for plan in plans for topic, count in plan.partitions().items()}
    admin.create_topics([NewTopic(topic, count, 1) for topic, count in wanted.items()])
    until("the topics", lambda: _known_topics(admin, wanted) == wanted)


def _known_topics(admin: KafkaAdminClient, topics: Collection[str]) -> dict[str, int]:
    try:
        described = admin.describe_topics(list(topics))
    except KafkaError:  # a topic is not known yet
        return {}
    return {topic["name"]: sum(one["leader_id"] >= 0 for one in topic["partitions"]) for topic in described}


def settle(
    groups: Sequence[LiveGroup],
    describe: Callable[[Sequence[str]], Mapping[str, GroupDescription]],
    timeout_seconds: float = SETTLING_SECONDS,
) -> dict[str, str]:
    """Wait until each group has been as expected in Kafka for `_CALM_SECONDS`. Returns the problem of each other group.

    A settled group is not checked again, because the session of its static member can end before the slowest group
    has settled.
    """
    deadline = time.monotonic() + timeout_seconds
    waiting = {group.plan.name: group for group in groups}
    wrong: dict[str, str] = {}
    since: dict[str, tuple[GroupDescription, float]] = {}
    while waiting and time.monotonic() < deadline:
        described = describe(list(waiting))
        now = time.monotonic()
        for name, group in list(waiting.items()):
            if why := group.problem(described[name]):
                wrong[name] = why
                since.pop(name, None)
            elif since.get(name, (None, 0.0))[0] != described[name]:
                since[name] = described[name], now
            elif now - since[name][1] >= _CALM_SECONDS:
                del waiting[name]
                wrong.pop(name, None)
        time.sleep(0.5)
    return wrong
