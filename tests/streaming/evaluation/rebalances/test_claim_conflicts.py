"""Tests of the contradictions in the claims of classic members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.evaluation.rebalances.claim_conflicts import recorded_claims
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.layouts import STICKY_USER_DATA
from tests.bench.encoder import encode
from tests.streaming.groups import member, metadata

PARTITION = ("orders", 0)


def java_3_3(member_id: str, generation_id: int) -> ClassicMember:
    """Return a member as Java 2.8.1 to 3.3 writes it: version 1, the generation of its claim in the user data."""
    joined = member(member_id, owned=[PARTITION], user_data=generation_id.to_bytes(4, "big", signed=True))
    assert joined.subscription is not None
    return replace(joined, subscription=replace(joined.subscription, version=1))


def java_3_4(member_id: str, generation_id: int) -> ClassicMember:
    """Return a member with the field `generationId`."""
    joined = java_3_3(member_id, generation_id)
    assert joined.subscription is not None
    return replace(joined, subscription=replace(joined.subscription, version=3, generation_id=generation_id))


def eager(member_id: str, generation_id: int) -> ClassicMember:
    """Return a `sticky` member. Its claim is only in the user data."""
    previous = [{"topic": "orders", "partitions": [0]}]
    claim = {"previousAssignment": previous, "generation": generation_id}
    return member(member_id, user_data=encode(STICKY_USER_DATA, 1, claim))


@pytest.mark.parametrize(
    ("joined", "strategy", "claimed_twice", "why"),
    [
        ([java_3_3("a", 4), java_3_3("b", 5)], "cooperative-sticky", (), "a missed the rebalance to generation 5"),
        ([java_3_3("a", 5), java_3_3("b", 5)], "cooperative-sticky", (PARTITION,), "both claim the same generation"),
        ([java_3_3("a", 4), java_3_4("b", 5)], "cooperative-sticky", (), "a is not updated to Java 3.4 yet"),
        ([java_3_3("a", 5), java_3_4("b", 5)], "cooperative-sticky", (PARTITION,), "the same, with one generation"),
        ([java_3_3("a", -1), java_3_3("b", -1)], "cooperative-sticky", (PARTITION,), "both have no generation"),
        ([eager("a", 5), eager("b", 5)], "sticky", (), "both have revoked it. The consumers of aiokafka share a claim"),
    ],
)
def test_a_partition_is_claimed_twice_only_if_both_claims_have_the_same_generation(
    joined: list[ClassicMember], strategy: str, claimed_twice: tuple[tuple[str, int], ...], why: str
) -> None:
    """KIP-792. Before, old and new claims of Java 2.8.1 to 3.3 looked the same, and `KafkaProtocolFault` fired."""
    snapshot = GroupSnapshot("g", classic=metadata(6, joined, protocol=strategy))
    assert recorded_claims(snapshot, members(snapshot)).claimed_twice == claimed_twice, why
