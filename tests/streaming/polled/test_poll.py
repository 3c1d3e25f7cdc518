"""Whom to ask, and when everything that can be told was told."""

from __future__ import annotations

import pytest

from streaming.group.advance import advance
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    DescribedGroup,
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
    """Return what is known after one answer."""
    return advance(GroupSnapshot("g"), answered(0, group))


@pytest.mark.parametrize(
    ("listed", "snapshot", "is_asked", "why"),
    [
        (("classic", "Stable"), known(ALONE), True, "members change while a group is Stable"),
        (("classic", "Empty"), known(classic()), False, "nobody is there and nobody was"),
        (("classic", "Empty"), known(ALONE), True, "the last member left"),
        (("classic", "Empty"), None, True, "never heard of"),
        (("consumer", "Empty"), known(classic()), True, "another type"),
        ((None, None), known(classic()), True, "an old broker lists no state"),
        (None, known(ALONE), True, "not listed: only a denial proves that it is gone"),
    ],
)
def test_everybody_is_asked_for_but_groups_that_stay_empty(
    listed: tuple[str | None, str | None] | None, snapshot: GroupSnapshot | None, is_asked: bool, why: str
):
    """Ten thousand groups that only commit cost one line of a listing each."""
    groups = {} if listed is None else {"g": ListedGroup(listed[0], "consumer", listed[1], 1)}
    listing = GroupListing(0, groups)
    assert ("g" in to_describe(listing, {} if snapshot is None else {"g": snapshot}, ())) is is_asked, why


def test_a_group_of_which_only_commits_are_known_is_asked_for_and_one_that_is_over_is_not():
    """What is known to have ended needs no second proof."""
    dead = GroupSnapshot("dead")
    assert to_describe(GroupListing(0, {}), {"dead": dead}, ["commits-only"]) == {"commits-only": None}


@pytest.mark.parametrize(
    ("description", "offsets", "gap", "is_complete", "hides", "why"),
    [
        (ALONE, {}, None, True, False, "all is told"),
        (GroupNotFound(), {}, None, True, False, "a denial is an answer"),
        (Unanswered("coordinator_load_in_progress"), {}, None, False, False, "will be told later"),
        (Unanswered("group_authorization_failed"), {}, None, True, True, "will never be told"),
        (ALONE, Unanswered("request_timed_out"), None, False, False, "commits are missing"),
        (ALONE, {}, "coordinator_not_available", False, False, "a broker is missing"),
        (ALONE, {}, CLUSTER_NOT_DESCRIBABLE, True, True, "asking again shows no more"),
    ],
)
def test_a_poll_is_complete_when_asking_again_would_tell_no_more(  # noqa: PLR0913, PLR0917 - a table's columns
    description: DescribedGroup, offsets: dict[str, int], gap: str | None, is_complete: bool, hides: bool, why: str
):
    """Readiness waits for brokers that load, not for rights nobody grants."""
    gaps = () if gap is None else (ListingGap(None, gap),)
    poll = polled({"g": description}, {"g": offsets}, gaps=gaps)  # type: ignore[dict-item]
    assert (poll.is_complete, poll.hides_groups) == (is_complete, hides), why
