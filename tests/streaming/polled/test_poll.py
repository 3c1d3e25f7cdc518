"""Tests of which groups are polled, and of when a poll is complete."""

from __future__ import annotations

import pytest

from streaming.group.advance import advance
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_TYPE_NOT_KNOWN,
    UNSUPPORTED_VERSION,
    DescribedGroup,
    Description,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    ListingGap,
    Unanswered,
)
from streaming.group.snapshot import GroupSnapshot
from streaming.polled.poll import to_describe
from tests.streaming.polled.answers import answered, classic, classic_member, polled

ALONE = classic(classic_member("a", [0]))


def known(group: DescribedGroup) -> GroupSnapshot:
    """Return the snapshot after one answer."""
    return advance(GroupSnapshot("g"), answered(0, group))


@pytest.mark.parametrize(
    ("listed", "snapshot", "is_asked", "why"),
    [
        (("classic", "Stable"), known(ALONE), True, "members can change while a group is Stable"),
        (("classic", "Empty"), known(classic()), False, "the group has no members and had none before"),
        (("classic", "Empty"), known(ALONE), True, "the last member left"),
        (("classic", "Empty"), None, True, "the group is unknown"),
        (("consumer", "Empty"), known(classic()), True, "the group has a different type now"),
        ((None, None), known(classic()), True, "an old broker lists no state"),
        (None, known(ALONE), True, "not listed: only the error GroupNotFound proves that it is gone"),
    ],
)
def test_all_groups_are_described_except_those_that_stay_empty(
    listed: tuple[str | None, str | None] | None, snapshot: GroupSnapshot | None, is_asked: bool, why: str
):
    """Ten thousand groups that only commit cost one line of a listing each."""
    groups = {} if listed is None else {"g": ListedGroup(listed[0], "consumer", listed[1], 1)}
    listing = GroupListing(0, groups)
    assert ("g" in to_describe(listing, {} if snapshot is None else {"g": snapshot}, ())) is is_asked, why


def test_a_group_with_only_commits_is_described_and_a_deleted_group_is_not():
    """A known end needs no second proof."""
    dead = GroupSnapshot("dead")
    assert to_describe(GroupListing(0, {}), {"dead": dead}, ["commits-only"]) == {"commits-only": None}


@pytest.mark.parametrize(
    ("description", "offsets", "gap", "is_complete", "hides", "why"),
    [
        (ALONE, {}, None, True, False, "the description is complete"),
        (GroupNotFound(), {}, None, True, False, "the error GroupNotFound is an answer"),
        (Unanswered("coordinator_load_in_progress"), {}, None, False, False, "the answer will come later"),
        (Unanswered("group_authorization_failed"), {}, None, True, True, "the answer will never come"),
        (UNSUPPORTED_VERSION, {}, None, True, True, "the broker must be upgraded first"),
        (GROUP_TYPE_NOT_KNOWN, {}, None, True, True, "the monitor must be upgraded first"),
        (ALONE, Unanswered("request_timed_out"), None, False, False, "commits are missing"),
        (ALONE, {}, "coordinator_not_available", False, False, "a broker is missing"),
        (ALONE, {}, CLUSTER_NOT_DESCRIBABLE, True, True, "a new request returns nothing more"),
    ],
)
def test_a_poll_is_complete_if_a_new_request_would_return_nothing_more(  # noqa: PLR0913, PLR0917 - a table's columns
    description: DescribedGroup, offsets: dict[str, int], gap: str | None, is_complete: bool, hides: bool, why: str
):
    """Readiness waits for coordinators that are loading, but not for missing permissions or a new version.

    With a share group on Kafka 4.0, the cluster was never ready.
    """
    gaps = () if gap is None else (ListingGap(None, gap),)
    poll = polled({"g": description}, {"g": offsets}, gaps=gaps)  # type: ignore[dict-item]
    assert (poll.is_complete, poll.hides_groups) == (is_complete, hides), why


@pytest.mark.parametrize(
    ("description", "offsets", "before", "refused", "why"),
    [
        (ALONE, {}, {"g"}, set(), "the poll contains the commits"),
        (ALONE, Unanswered("group_authorization_failed"), set(), {"g"}, "the permission is missing"),
        (ALONE, Unanswered("coordinator_load_in_progress"), set(), set(), "the commits are only one poll old"),
        (ALONE, Unanswered("coordinator_load_in_progress"), {"g"}, {"g"}, "the commits are as old as before"),
        (Unanswered("group_authorization_failed"), {}, set(), set(), "only the members are unknown"),
        (Unanswered("group_authorization_failed"), None, set(), {"g"}, "the listing does not show the group"),
        (ALONE, None, {"g"}, {"g"}, "the permission was granted after the listing: only the next poll has the commits"),
        (GroupNotFound(), None, {"g"}, set(), "the group was deleted"),
    ],
)
def test_a_group_is_refused_from_a_lasting_error_until_the_next_response(
    description: Description, offsets: dict[str, int] | Unanswered | None, before: set[str], refused: set[str], why: str
):
    """The known commits of a refused group do not change any more, so its lag would grow for ever."""
    poll = polled({"g": description}, {} if offsets is None else {"g": offsets})  # type: ignore[dict-item]
    assert poll.refused_groups(before) == refused, why
