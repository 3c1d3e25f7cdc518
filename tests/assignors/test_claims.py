"""Whose claim counts: KIP-54, and KIP-792 for the generation that tells an old claim from a new one."""

from __future__ import annotations

import pytest

from assignors.claims import NO_OWNER, find_earlier_owners, settle_claims
from assignors.model import MemberSubscription

MINE = (("t", 0),)


def claim(generation: int, **more: int) -> MemberSubscription:
    """A member that claims t-0; its id does not matter here."""
    return MemberSubscription("m", ("t",), owned=MINE, generation_id=generation, **more)


@pytest.mark.parametrize(
    ("members", "owner", "contested", "why"),
    [
        ([], NO_OWNER, False, "nobody claims it"),
        ([claim(-1)], 0, False, "the only claim counts, even without a generation"),
        ([claim(4), claim(5)], 1, False, "the newer generation wins"),
        ([claim(5), claim(4)], 0, False, "in whichever order they are met"),
        ([claim(5), claim(5)], NO_OWNER, True, "two of one generation: neither can be believed"),
        ([claim(5), claim(5), claim(6)], 2, True, "a newer one can, but the partition stays contested"),
        ([claim(6), claim(5), claim(5)], 0, False, "older ones contest nothing"),
        ([claim(5), claim(5), claim(5)], NO_OWNER, True, "three of one generation are no better than two"),
        ([claim(5), claim(-1, user_data_version=1)], 0, False, "no generation is older than any"),
        ([claim(5), claim(6, user_data_version=0)], 0, False, "version 0 of the userData has no generation"),
        (
            [claim(5, subscription_generation=-1), claim(4)],
            1,
            False,
            "Java holds the Subscription's generation against the newcomer: none, so 4 is newer",
        ),
    ],
)
def test_the_newest_claim_counts(members: list[MemberSubscription], owner: int, *, contested: bool, why: str):
    """One partition, its claimants in the order in which they are met."""
    claims = settle_claims(members, {"t": 1})
    assert (claims.owners["t"][0], bool(claims.contested)) == (owner, contested), why


def test_a_partition_that_does_not_exist_cannot_be_claimed():
    """A topic was deleted, or made anew with fewer partitions: Java throws, or assigns what is gone."""
    member = MemberSubscription("m", ("t",), owned=(("t", 0), ("t", 1), ("t", -1), ("gone", 0)), generation_id=1)
    assert settle_claims([member], {"t": 1}).owners == {"t": [0]}


def test_a_claim_made_twice_by_one_member_is_one_claim():
    """Input is hostile; Java would hold the member against itself."""
    member = MemberSubscription("m", ("t",), owned=MINE + MINE, generation_id=1)
    claims = settle_claims([member], {"t": 1})
    assert (claims.owners, claims.contested) == ({"t": [0]}, set())


def test_the_scan_decides_between_claims_that_are_equally_good():
    """Same generation as the Subscription has it, but for a stale userData: who is met first stays."""
    members = [claim(3, subscription_generation=5), claim(4, subscription_generation=5)]
    assert settle_claims(members, {"t": 1}, scan=[0, 1]).owners["t"] == [0]
    assert settle_claims(members, {"t": 1}, scan=[1, 0]).owners["t"] == [1]


def test_the_earlier_owner_is_the_newest_of_the_older_generations():
    """A partition that has to move goes back there if it can: some of its state may still be there."""
    members = [claim(2), claim(3), claim(3), claim(4), MemberSubscription("new", ("t",))]
    assert find_earlier_owners(members, 4, scan=range(5)) == {("t", 0): 1}
    assert find_earlier_owners(members, 4, scan=[2, 1, 0, 3, 4]) == {("t", 0): 2}
