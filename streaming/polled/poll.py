"""Define the responses of one poll, and select the groups to describe in the next poll."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_TYPE_NOT_KNOWN,
    UNSUPPORTED_VERSION,
    Description,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    OffsetsByPartition,
    Unanswered,
)
from streaming.group.snapshot import EMPTY, GroupSnapshot

PERMISSION_MISSING: Final = frozenset(
    {CLUSTER_NOT_DESCRIBABLE, "group_authorization_failed", "topic_authorization_failed"}
)
"""Errors that missing permissions cause."""
NOT_SUPPORTED: Final = frozenset({UNSUPPORTED_VERSION.reason, GROUP_TYPE_NOT_KNOWN.reason})
"""Errors of groups that this version of the broker or this version of the monitor cannot describe."""
_LASTING: Final = PERMISSION_MISSING | NOT_SUPPORTED
"""Errors that do not end until an operator changes something. A poll with only such errors is complete."""


@dataclass(frozen=True, slots=True)
class Poll:
    """The responses of one poll. Groups that have stayed Empty have no description (`to_describe`)."""

    began_at_ms: int
    listing: GroupListing
    descriptions: Mapping[str, Description]
    offsets: Mapping[str, OffsetsByPartition | Unanswered]

    @property
    def is_complete(self) -> bool:
        """True if a new poll would return nothing more: each request has a response or a lasting error."""
        return self.failed_requests().keys() <= _LASTING

    @property
    def hides_groups(self) -> bool:
        """True if a request failed with a lasting error. Then the poll can miss groups, or the states of groups."""
        return not self.failed_requests().keys().isdisjoint(_LASTING)

    def refused_groups(self, before: Collection[str]) -> frozenset[str]:
        """Return the groups whose commits this poll does not contain because of a lasting error.

        `before` is the result for the previous poll. A group of `before` stays in the result until the brokers return
        its commits, or until it does not exist any more.
        """
        responses = {**self.descriptions, **self.offsets}
        refused = frozenset(
            group_id for group_id, one in responses.items() if isinstance(one, Unanswered) and one.reason in _LASTING
        )
        gone = {group_id for group_id, one in self.descriptions.items() if isinstance(one, GroupNotFound)}
        returned = {group_id for group_id, one in self.offsets.items() if not isinstance(one, Unanswered)}
        return refused.union(before) - gone - returned

    def failed_requests(self) -> Mapping[str, Sequence[str]]:
        """Map the reason of each failed request to the sorted ids of its groups. A failed listing has no ids."""
        failed: dict[str, set[str]] = {gap.reason: set() for gap in self.listing.gaps}
        for group_id, answer in chain(self.descriptions.items(), self.offsets.items()):
            if isinstance(answer, Unanswered):
                failed.setdefault(answer.reason, set()).add(group_id)
        return {reason: sorted(group_ids) for reason, group_ids in failed.items()}


def to_describe(
    listing: GroupListing, known: Mapping[str, GroupSnapshot], committed: Collection[str]
) -> Mapping[str, str | None]:
    """Return the ids of the groups to describe, and their group types from the listing or from the known state.

    The poll describes two kinds of groups:

    - Listed groups, except groups that have stayed Empty since the previous poll. Stable groups are included, because
      the listing does not show a change of members.
    - Groups that have a known state or known commits, but are not in the listing. Unlisted groups may still exist: only
      the coordinator's response proves that a group was deleted.
    """
    listed = {
        group_id: group.group_type
        for group_id, group in listing.groups.items()
        if not _is_still_empty(group, known.get(group_id))
    }
    alive = (group_id for group_id, snapshot in known.items() if not snapshot.is_over)
    missing = {*alive, *committed}.difference(listing.groups)
    return {**listed, **{group_id: known[group_id].group_type if group_id in known else None for group_id in missing}}


def _is_still_empty(listed: ListedGroup, known: GroupSnapshot | None) -> bool:
    return known is not None and listed.state == known.state == EMPTY and listed.group_type == known.group_type
