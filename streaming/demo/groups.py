"""The demo's groups as a table of values: who is in each, by which client, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streaming.demo.topics import BUSY, ORDERS, PAYMENTS, RANGE_TOPICS, THREE, UNEQUAL_TOPICS, DemoTopic

ClientLibrary = Literal["kafka-python", "librdkafka"]
CommitStyle = Literal["auto", "sync", "async"]


@dataclass(frozen=True)
class DemoMember:
    """One consumer. Without `out_seconds` it stays; with it, it leaves after `in_seconds` and comes back, and so on."""

    topics: tuple[DemoTopic, ...]
    group_instance_id: str | None = None
    in_seconds: float = 0.0
    out_seconds: float = 0.0
    record_seconds: float = 0.0
    """How long it works on each record."""


@dataclass(frozen=True)
class DemoGroup:
    """One group. `protocol` is the strategy's name as the group coordinator records it."""

    group_id: str
    shows: str
    client: ClientLibrary
    protocol: str
    commits: CommitStyle
    members: tuple[DemoMember, ...]
    group_protocol: Literal["classic", "consumer"] = "classic"

    @property
    def topics(self) -> tuple[DemoTopic, ...]:
        """What its members subscribe to, each topic once, by name."""
        subscribed = {topic for member in self.members for topic in member.topics}
        return tuple(sorted(subscribed, key=lambda topic: topic.name))


DEMO_GROUPS: tuple[DemoGroup, ...] = (
    DemoGroup(
        group_id="demo-range",
        shows="range deals each topic by itself: the first member gets one partition more with every topic",
        client="kafka-python",
        protocol="range",
        commits="auto",
        members=(DemoMember(RANGE_TOPICS),) * 3,
    ),
    DemoGroup(
        group_id="demo-roundrobin",
        shows="roundrobin with unequal subscriptions: the one member that reads every topic gets most of the work",
        client="librdkafka",
        protocol="roundrobin",
        commits="sync",
        members=tuple(DemoMember(UNEQUAL_TOPICS[: number + 1]) for number in range(3)),
    ),
    DemoGroup(
        group_id="demo-sticky",
        shows="sticky: even, and a member keeps what it has",
        client="kafka-python",
        protocol="sticky",
        commits="async",
        members=(DemoMember((ORDERS, PAYMENTS)),) * 3,
    ),
    DemoGroup(
        group_id="demo-cooperative",
        shows="cooperative-sticky: even, and in a rebalance only the partitions that move stop for a moment",
        client="kafka-python",
        protocol="cooperative-sticky",
        commits="async",
        members=(DemoMember((ORDERS,)),) * 3,
    ),
    DemoGroup(
        group_id="demo-idle",
        shows="five members on three partitions: two of them can only wait",
        client="kafka-python",
        protocol="range",
        commits="auto",
        members=(DemoMember((THREE,)),) * 5,
    ),
    DemoGroup(
        group_id="demo-static",
        shows="static members: each has a name of its own (group.instance.id) and keeps its share over a restart",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=tuple(DemoMember((PAYMENTS,), group_instance_id=f"payments-{number}") for number in range(3)),
    ),
    DemoGroup(
        group_id="demo-flapping",
        shows="one member joins and leaves every few seconds: each time the whole group rebalances",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=(
            DemoMember((PAYMENTS,)),
            DemoMember((PAYMENTS,)),
            DemoMember((PAYMENTS,), in_seconds=7.0, out_seconds=4.0),
        ),
    ),
    DemoGroup(
        group_id="demo-custom",
        shows="an assignor of its own: no known strategy explains this assignment",
        client="kafka-python",
        protocol="demo-affinity",
        commits="auto",
        members=(DemoMember((ORDERS, PAYMENTS)),) * 3,
    ),
    DemoGroup(
        group_id="demo-slow",
        shows="a consumer slower than its producer: its lag grows for ever",
        client="kafka-python",
        protocol="range",
        commits="sync",
        members=(DemoMember((BUSY,), record_seconds=0.5),),
    ),
    DemoGroup(
        group_id="demo-kip848",
        shows="the new protocol (KIP-848): the broker assigns, not a member",
        client="librdkafka",
        protocol="uniform",
        commits="async",
        members=(DemoMember((ORDERS,)),) * 2,
        group_protocol="consumer",
    ),
)
