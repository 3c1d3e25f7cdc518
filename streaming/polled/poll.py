"""Defines the answers of one poll, and selects the groups to describe in the next poll. A poll takes some seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    Description,
    GroupListing,
    ListedGroup,
    OffsetsByPartition,
    Unanswered,
)
from streaming.group.snapshot import EMPTY, GroupSnapshot

RIGHTS_MISSING: Final = frozenset({CLUSTER_NOT_DESCRIBABLE, "group_authorization_failed", "topic_authorization_failed"})
"""Errors because of missing permissions.

A new request would return the same error, so the poll does not repeat the request.
"""


@dataclass(frozen=True, slots=True)
class Poll:
    """The answers of one poll. Descriptions were requested after the listing.

    Offsets were requested after the listing and the descriptions.

    If a group was Empty before and is still Empty, it is not described. So a listed group can have no description
    (`to_describe`).
    """

    began_at_ms: int
    listing: GroupListing
    descriptions: Mapping[str, Description]
    offsets: Mapping[str, OffsetsByPartition | Unanswered]

    @property
    def is_complete(self) -> bool:
        """True if a new request is useless: every answer arrived, except answers that missing permissions prevent."""
        return all(reason in RIGHTS_MISSING for reason in self._refusals())

    @property
    def hides_groups(self) -> bool:
        """True if groups are hidden, or possibly hidden, because of missing permissions."""
        return any(reason in RIGHTS_MISSING for reason in self._refusals())

    def _refusals(self) -> Iterator[str]:
        yield from (gap.reason for gap in self.listing.gaps)
        for answer in (*self.descriptions.values(), *self.offsets.values()):
            if isinstance(answer, Unanswered):
                yield answer.reason


def to_describe(
    listing: GroupListing, known: Mapping[str, GroupSnapshot], committed: Collection[str]
) -> Mapping[str, str | None]:
    """Return the ids of the groups to describe, and their group types.

    A group type is from the listing or the known state.

    These groups are described:

    - Listed groups, except those that are Empty in the listing and in the known state. Members of a Stable group can
      change without a change in the listing.
    - Groups that are in the known state or have commits, but are not listed. Only the coordinator's answer proves that
      they do not exist any more.
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
