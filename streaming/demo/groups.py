"""Defines the groups of the demo: their members, client libraries, strategies, and typical behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streaming.demo.topics import BUSY, CLICKS, ORDERS, PAYMENTS, RANGE_TOPICS, THREE, UNEQUAL_TOPICS, DemoTopic

ClientLibrary = Literal["kafka-python", "librdkafka"]
CommitStyle = Literal["auto", "sync", "async"]


@dataclass(frozen=True)
class DemoMember:
    """One consumer.

    If `absence_seconds` is 0, the consumer never leaves its group. If `absence_seconds` is set, the consumer leaves
    after `stay_seconds`, joins again after `absence_seconds`, and repeats.
    """

    topics: tuple[DemoTopic, ...]
    group_instance_id: str | None = None
    stay_seconds: float = 0.0
    absence_seconds: float = 0.0
    seconds_per_record: float = 0.0
    """The time that the consumer needs to process a record."""


@dataclass(frozen=True)
class DemoGroup:
    """One group. `protocol` is the strategy, as the group coordinator writes it into `__consumer_offsets`.

    If `protocol` is empty, each consumer uses assign() instead of subscribe(). Then the coordinator knows only the
    committed offsets of the group.
    """

    group_id: str
    shows: str
    client: ClientLibrary
    protocol: str
    commits: CommitStyle
    members: tuple[DemoMember, ...]
    group_protocol: Literal["classic", "consumer"] = "classic"

    @property
    def topics(self) -> tuple[DemoTopic, ...]:
        """The topics of all members, sorted by name."""
        subscribed = {topic for member in self.members for topic in member.topics}
        return tuple(sorted(subscribed, key=lambda topic: topic.name))


DEMO_GROUPS: tuple[DemoGroup, ...] = (
    DemoGroup(
        group_id="demo-range",
        shows="range assigns each topic separately: the first member gets one extra partition of every topic",
        client="kafka-python",
        protocol="range",
        commits="auto",
        members=(DemoMember(RANGE_TOPICS),) * 3,
    ),
    DemoGroup(
        group_id="demo-roundrobin",
        shows="roundrobin with unequal subscriptions: the member that reads every topic gets most of the work",
        client="librdkafka",
        protocol="roundrobin",
        commits="sync",
        members=tuple(DemoMember(UNEQUAL_TOPICS[: number + 1]) for number in range(3)),
    ),
    DemoGroup(
        group_id="demo-sticky",
        shows="sticky: each member has the same number of partitions and keeps them in a rebalance",
        client="kafka-python",
        protocol="sticky",
        commits="async",
        members=(DemoMember((ORDERS, PAYMENTS)),) * 3,
    ),
    DemoGroup(
        group_id="demo-cooperative",
        shows="cooperative-sticky: a rebalance interrupts only the partitions that move",
        client="kafka-python",
        protocol="cooperative-sticky",
        commits="async",
        members=(DemoMember((ORDERS,)),) * 3,
    ),
    DemoGroup(
        group_id="demo-idle",
        shows="five members on three partitions: two members are idle",
        client="kafka-python",
        protocol="range",
        commits="auto",
        members=(DemoMember((THREE,)),) * 5,
    ),
    DemoGroup(
        group_id="demo-static",
        shows="static members: each has a group.instance.id and keeps its partitions when it restarts",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=tuple(DemoMember((PAYMENTS,), group_instance_id=f"payments-{number}") for number in range(3)),
    ),
    DemoGroup(
        group_id="demo-flapping",
        shows="one member joins and leaves every few seconds, and the whole group rebalances each time",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=(
            DemoMember((PAYMENTS,)),
            DemoMember((PAYMENTS,)),
            DemoMember((PAYMENTS,), stay_seconds=7.0, absence_seconds=4.0),
        ),
    ),
    DemoGroup(
        group_id="demo-custom",
        shows="a custom assignor: no known strategy explains this assignment",
        client="kafka-python",
        protocol="demo-affinity",
        commits="auto",
        members=(DemoMember((ORDERS, PAYMENTS)),) * 3,
    ),
    DemoGroup(
        group_id="demo-slow",
        shows="a consumer that is slower than its producer: its lag grows without limit",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=(DemoMember((BUSY,), seconds_per_record=0.5),),
    ),
    DemoGroup(
        group_id="demo-hot-key",
        shows="most records have the same key: with any assignment, the owner of one partition falls behind",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=(DemoMember((CLICKS,), seconds_per_record=0.4),) * 3,
    ),
    DemoGroup(
        group_id="demo-assign",
        shows="a consumer that uses assign(): the group only commits offsets and has no members",
        client="kafka-python",
        protocol="",
        commits="sync",
        members=(DemoMember((THREE,)),),
    ),
    DemoGroup(
        group_id="demo-kip848",
        shows="the new protocol (KIP-848): the broker, not a member, computes the assignment",
        client="librdkafka",
        protocol="uniform",
        commits="async",
        members=(DemoMember((ORDERS,)),) * 2,
        group_protocol="consumer",
    ),
)
