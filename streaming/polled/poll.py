"""One poll: what all brokers said within some seconds, and whom to ask the next time."""

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
"""Refusals that asking again does not help: what they hide is not waited for."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Answers of one poll. Descriptions are younger than the listing, offsets younger than both.

    A group that is listed and not described did not have to be: it was Empty and is (`to_describe`).
    """

    began_at_ms: int
    listing: GroupListing
    descriptions: Mapping[str, Description]
    offsets: Mapping[str, OffsetsByPartition | Unanswered]

    @property
    def is_complete(self) -> bool:
        """Whether everything was answered that can be: asking again would tell no more."""
        return all(reason in RIGHTS_MISSING for reason in self._refusals())

    @property
    def hides_groups(self) -> bool:
        """Whether there are, or may be, groups that we have no right to see."""
        return any(reason in RIGHTS_MISSING for reason in self._refusals())

    def _refusals(self) -> Iterator[str]:
        yield from (gap.reason for gap in self.listing.gaps)
        for answer in (*self.descriptions.values(), *self.offsets.values()):
            if isinstance(answer, Unanswered):
                yield answer.reason


def to_describe(
    listing: GroupListing, known: Mapping[str, GroupSnapshot], committed: Collection[str]
) -> Mapping[str, str | None]:
    """Groups to describe, by id with the type they are listed or known under.

    Members of a Stable group change without its line in the listing changing, so all are asked for but those that are
    known to be Empty and are listed so. Groups that are known to live, or to have committed, and are not listed are
    asked for because only a coordinator's denial proves that they are gone.
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
