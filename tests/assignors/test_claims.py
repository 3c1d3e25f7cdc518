"""Tests which claims count (KIP-54, and KIP-792 for their generations)."""

from __future__ import annotations

import pytest

from assignors.claims import NO_OWNER, find_earlier_owners, settle_claims
from assignors.model import MemberSubscription

MINE = (("t", 0),)


def claim(generation: int, **more: int) -> MemberSubscription:
    """Return a member that claims t-0. Its id does not matter here."""
    return MemberSubscription("m", ("t",), owned=MINE, generation_id=generation, **more)


@pytest.mark.parametrize(
    ("members", "owner", "contested", "why"),
    [
        ([], NO_OWNER, False, "no member claims it"),
        ([claim(-1)], 0, False, "the only claim counts, even without a generation"),
        ([claim(4), claim(5)], 1, False, "the newer generation wins"),
        ([claim(5), claim(4)], 0, False, "in any order of the claims"),
        ([claim(5), claim(5)], NO_OWNER, True, "two claims of one generation: neither counts"),
        ([claim(5), claim(5), claim(6)], 2, True, "a newer claim counts, but the partition stays contested"),
        ([claim(6), claim(5), claim(5)], 0, False, "older claims contest nothing"),
        ([claim(5), claim(5), claim(5)], NO_OWNER, True, "three claims of one generation: none counts"),
        ([claim(5), claim(-1, user_data_version=1)], 0, False, "a claim without a generation is the oldest"),
        ([claim(5), claim(6, user_data_version=0)], 0, False, "version 0 of the userData has no generation"),
        (
            [claim(5, subscription_generation=-1), claim(4)],
            1,
            False,
            "Java compares the new claim with the Subscription's generation, which is -1, so 4 is newer",
        ),
    ],
)
def test_the_newest_claim_counts(members: list[MemberSubscription], owner: int, *, contested: bool, why: str):
    """One partition has several claimants, in the order in which they are visited."""
    claims = settle_claims(members, {"t": 1})
    assert (claims.owners["t"][0], bool(claims.contested)) == (owner, contested), why


def test_a_partition_that_does_not_exist_cannot_be_claimed():
    """A topic was deleted, or created again with fewer partitions. Java throws, or assigns deleted partitions."""
    member = MemberSubscription("m", ("t",), owned=(("t", 0), ("t", 1), ("t", -1), ("gone", 0)), generation_id=1)
    assert settle_claims([member], {"t": 1}).owners == {"t": [0]}


def test_a_claim_made_twice_by_one_member_is_one_claim():
    """Input can be hostile. Java would compare the member with itself."""
    member = MemberSubscription("m", ("t",), owned=MINE + MINE, generation_id=1)
    claims = settle_claims([member], {"t": 1})
    assert (claims.owners, claims.contested) == ({"t": [0]}, set())


def test_the_scan_decides_between_claims_that_are_equally_good():
    """Both Subscriptions have the same generation, and the userData are older. The first visited claim stays."""
    members = [claim(3, subscription_generation=5), claim(4, subscription_generation=5)]
    assert settle_claims(members, {"t": 1}, scan=[0, 1]).owners["t"] == [0]
    assert settle_claims(members, {"t": 1}, scan=[1, 0]).owners["t"] == [1]


def test_the_earlier_owner_is_the_newest_of_the_older_generations():
    """A partition that must move goes back to this owner if possible, because it may still have state of it."""
    members = [claim(2), claim(3), claim(3), claim(4), MemberSubscription("new", ("t",))]
    assert find_earlier_owners(members, 4, scan=range(5)) == {("t", 0): 1}
    assert find_earlier_owners(members, 4, scan=[2, 1, 0, 3, 4]) == {("t", 0): 2}
