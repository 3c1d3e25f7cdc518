"""What each group goes through, step by step. A step is done when Kafka's Admin shows the group stable as expected."""

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
from tests.clients.members import Joining, Programs
from tests.clients.recount import Generation, Share, broken_rules
from tests.end_to_end.group_description import GroupDescription
from tests.end_to_end.monitor_process import until

SETTLING_SECONDS = 120.0
_CALM_SECONDS = 3.0
"""A cooperative group is stable for a moment between its two generations."""


@dataclass
class LiveGroup:
    """A group under way: who is in it, and how many partitions its topics have now.

    Attributes:
        present: the numbers of its members, those of static members that are away included.

    """

    plan: GroupPlan
    programs: Programs
    partitions: dict[str, int]
    view: set[int] = field(default_factory=set)

    def join(self, *numbers: int) -> None:
        """Let members join."""
        for number in numbers:
            joining = Joining(
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
            self.view.add(number)

    def leave(self, number: int) -> None:
        """Let a member leave. A static one is only away, and comes back before its session ends.

        A static KIP-848 member is taken for gone: its group is Reconciling until its session ends, which is soon.
        """
        self.programs.leave(self.plan.client_id(number))
        if self.plan.instance_id(number) is None or self.plan.is_consumer_protocol:
            self.view.discard(number)

    def kill(self, number: int) -> None:
        """Kill a member; it is expected to be gone when its session has ended."""
        self.programs.kill(self.plan.client_id(number))
        self.view.discard(number)

    def end(self) -> None:
        """Let everybody leave."""
        for number in sorted(self.view):
            self.programs.leave(self.plan.client_id(number))
        self.view.clear()

    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Who subscribes to what, by client id, a static member that is away included."""
        return {self.plan.client_id(number): self.plan.topics_of(number) for number in sorted(self.view)}

    def unsettled(self, described: GroupDescription) -> str | None:
        """Why Kafka does not show the group as expected yet."""
        if failures := [why for client_id in self.subscriptions() if (why := self.programs.failure(client_id))]:
            return "; ".join(failures)
        if not described.settled(len(self.subscriptions())):
            return f"{described.state} with {len(described.members)} members, not {len(self.subscriptions())}"
        return None if self.plan.ignores_subscriptions else self.broken_law(described)

    def broken_law(self, described: GroupDescription) -> str | None:
        """What is wrong with the assignment, None if nothing is."""
        topics = self.subscriptions()
        shares = {
            member_id: Share(frozenset(topics.get(member.client_id, ())), member.assignment or frozenset())
            for member_id, member in described.members.items()
        }
        broken = broken_rules(Generation(described.assignor, shares), self.partitions)
        return str(broken) if broken.names() else None


@dataclass(frozen=True)
class Step:
    """One thing that happens to a group."""

    name: str
    happens: Callable[[LiveGroup, KafkaAdminClient], None]


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
    """Make the topics of these groups. Some libraries fail where a topic is not known yet, so that is waited for."""
    wanted = {topic: count for plan in plans for topic, count in plan.partitions().items()}
    admin.create_topics([NewTopic(topic, count, 1) for topic, count in wanted.items()])
    until("the topics", lambda: _known_topics(admin, wanted) == wanted)


def _known_topics(admin: KafkaAdminClient, topics: Collection[str]) -> dict[str, int]:
    try:
        described = admin.describe_topics(list(topics))
    except KafkaError:  # One of them is not known yet.
        return {}
    return {topic["name"]: sum(one["leader_id"] >= 0 for one in topic["partitions"]) for topic in described}


def settle(
    groups: Sequence[LiveGroup],
    describe: Callable[[Sequence[str]], Mapping[str, GroupDescription]],
    timeout_seconds: float = SETTLING_SECONDS,
) -> dict[str, str]:
    """Wait until Kafka has shown each group as expected for a while; returns what is wrong with those that it has not.

    A settled group is not looked at again: until the slowest group is settled, its static member's session may end.
    """
    deadline = time.monotonic() + timeout_seconds
    waiting = {group.plan.name: group for group in groups}
    wrong: dict[str, str] = {}
    since: dict[str, tuple[GroupDescription, float]] = {}
    while waiting and time.monotonic() < deadline:
        described = describe(list(waiting))
        now = time.monotonic()
        for name, group in list(waiting.items()):
            if why := group.unsettled(described[name]):
                wrong[name] = why
                since.pop(name, None)
            elif since.get(name, (None, 0.0))[0] != described[name]:
                since[name] = described[name], now
            elif now - since[name][1] >= _CALM_SECONDS:
                del waiting[name]
                wrong.pop(name, None)
        time.sleep(0.5)
    return wrong
