"""What is told of a group, and what of that is an answer."""

from __future__ import annotations

import pytest

from streaming.group.listing import DescribedGroup, DescribedMember, HeldTopic, held_partitions

ASSIGNED = bytes.fromhex("0001 00000001 0001 74 00000002 00000004 00000000 00000000")
"""t[4, 0], as a leader writes it."""


@pytest.mark.parametrize(
    ("group_type", "state", "protocol_type", "assignment", "held", "why"),
    [
        ("classic", "Stable", "consumer", ASSIGNED, (("t", 0), ("t", 4)), "the leader's bytes, sorted"),
        ("classic", "Stable", "consumer", b"", (), "a member the leader gave nothing"),
        ("classic", "PreparingRebalance", "consumer", b"", None, "the broker tells assignments only when Stable"),
        ("classic", "Stable", "connect", ASSIGNED, None, "bytes of another protocol type are its own"),
        ("classic", "Stable", "consumer", ASSIGNED[:9], None, "bytes cut short say nothing"),
        ("streams", "Stable", "streams", None, None, "a streams member holds tasks, not partitions"),
    ],
)
def test_a_member_holds_what_was_told_and_nothing_is_invented(  # noqa: PLR0913, PLR0917 - the columns of the table
    group_type: str, state: str, protocol_type: str, assignment: bytes | None, held: object, why: str
):
    """Rule 2: unknown is None, which is not "no partitions"."""
    member = DescribedMember("m", "c", "/h", assignment=assignment)
    group = DescribedGroup(group_type, state, protocol_type, "range", (member,))  # type: ignore[arg-type]
    assert held_partitions(group, member) == held, why


def test_a_member_of_the_new_protocol_holds_its_current_assignment_not_its_target():
    """KIP-848: the target is where it is going."""
    current, target = (HeldTopic("id", "t", (1,)),), (HeldTopic("id", "t", (0, 1)),)
    member = DescribedMember("m", "c", "/h", held=current, target=target)
    group = DescribedGroup("consumer", "Reconciling", "consumer", "uniform", (member,))
    assert held_partitions(group, member) == (("t", 1),)
