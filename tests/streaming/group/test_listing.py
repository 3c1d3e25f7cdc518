"""Tests of listed and described groups: which fields of a response are known."""

from __future__ import annotations

import pytest

from streaming.group.listing import DescribedGroup, DescribedMember, HeldTopic, held_partitions

ASSIGNED = bytes.fromhex("0001 00000001 0001 74 00000002 00000004 00000000 00000000")
"""t[4, 0] in the leader's encoding."""


@pytest.mark.parametrize(
    ("group_type", "state", "protocol_type", "assignment", "held", "why"),
    [
        ("classic", "Stable", "consumer", ASSIGNED, (("t", 0), ("t", 4)), "the leader's bytes, sorted"),
        ("classic", "Stable", "consumer", ASSIGNED[:-4], (("t", 0), ("t", 4)), "pykafka omits the user data"),
        ("classic", "Stable", "consumer", b"", (), "the leader assigned nothing to this member"),
        ("classic", "PreparingRebalance", "consumer", b"", None, "the broker returns assignments only in state Stable"),
        ("classic", "Stable", "connect", ASSIGNED, None, "other protocol types have their own format"),
        ("classic", "Stable", "consumer", ASSIGNED[:9], None, "truncated bytes are unknown"),
        ("streams", "Stable", "streams", None, None, "a streams member has tasks, not partitions"),
    ],
)
def test_a_member_has_the_partitions_in_the_response_or_unknown_ones(  # noqa: PLR0913, PLR0917 - the columns of the table
    group_type: str, state: str, protocol_type: str, assignment: bytes | None, held: object, why: str
):
    """Rule 2: unknown is None, which differs from "no partitions"."""
    member = DescribedMember("m", "c", "/h", assignment=assignment)
    group = DescribedGroup(group_type, state, protocol_type, "range", (member,))  # type: ignore[arg-type]
    assert held_partitions(group, member) == held, why


def test_a_kip_848_member_owns_its_current_assignment_not_its_target():
    """KIP-848: the member has not reached its target yet."""
    current, target = (HeldTopic("id", "t", (1,)),), (HeldTopic("id", "t", (0, 1)),)
    member = DescribedMember("m", "c", "/h", held=current, target=target)
    group = DescribedGroup("consumer", "Reconciling", "consumer", "uniform", (member,))
    assert held_partitions(group, member) == (("t", 1),)
