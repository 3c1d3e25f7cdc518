"""Answers of coordinators, for tests that use them as input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streaming.events import POLLED_PARTITION, GroupDescribed, Position
from streaming.group.listing import (
    DescribedGroup,
    DescribedMember,
    Description,
    GroupListing,
    HeldTopic,
    ListedGroup,
    ListingGap,
    Unanswered,
)
from streaming.polled.descriptions import described_event
from streaming.polled.poll import Poll

START_MS = 1_700_000_000_000
SUBSCRIPTION = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
"""A subscription to t without owned partitions."""


def assignment(partitions: Sequence[int]) -> bytes:
    """Return the leader's assignment bytes for partitions of t."""
    numbers = b"".join(number.to_bytes(4, "big") for number in partitions)
    return bytes.fromhex("0001 00000001 0001 74") + len(partitions).to_bytes(4, "big") + numbers + b"\0\0\0\0"


def classic_member(
    member_id: str,
    partitions: Sequence[int] = (),
    *,
    instance_id: str | None = None,
    subscription: bytes = SUBSCRIPTION,
) -> DescribedMember:
    """Return a classic member that subscribes to t and owns partitions of it."""
    held = assignment(partitions)
    return DescribedMember(member_id, "c", "/h", instance_id, subscription=subscription, assignment=held)


def classic(*members: DescribedMember, state: str | None = None) -> DescribedGroup:
    """Return a classic group. By default it is Stable with members and Empty without."""
    settled = state or ("Stable" if members else "Empty")
    protocol = "range" if settled == "Stable" else None
    return DescribedGroup("classic", settled, "consumer", protocol, members)


def modern_member(member_id: str, partitions: Sequence[int], *, epoch: int, target: Sequence[int]) -> DescribedMember:
    """Return a KIP-848 member that subscribes to t, with owned and target partitions."""

    def of_t(numbers: Sequence[int]) -> tuple[HeldTopic, ...]:
        return (HeldTopic("id-of-t", "t", tuple(numbers)),) if numbers else ()

    return DescribedMember(
        member_id,
        "c",
        "/h",
        member_epoch=epoch,
        subscribed_topics=("t",),
        held=of_t(partitions),
        target=of_t(target),
    )


def modern(epoch: int, *members: DescribedMember, state: str = "Stable") -> DescribedGroup:
    """Return a KIP-848 group whose targets are for its epoch."""
    return DescribedGroup("consumer", state, "consumer", "uniform", members, epoch, epoch)


def answered(number: int, group: DescribedGroup) -> GroupDescribed:
    """Return the event of an answer. Answers are one second apart."""
    return described_event("g", group, Position(POLLED_PARTITION, number, START_MS + 1000 * number))[0]


def polled(
    groups: Mapping[str, Description],
    offsets: Mapping[str, Mapping[tuple[str, int], int] | Unanswered] | None = None,
    *,
    at_ms: int = START_MS,
    gaps: Sequence[ListingGap] = (),
) -> Poll:
    """Return a poll in which every described group is also listed."""
    listed = {
        group_id: ListedGroup(group.group_type, group.protocol_type, group.state, 1)
        for group_id, group in groups.items()
        if isinstance(group, DescribedGroup)
    }
    return Poll(at_ms, GroupListing(at_ms, listed, tuple(gaps)), groups, offsets or {})
