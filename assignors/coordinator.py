"""Two decisions of the group coordinator: which broker partition holds a group, and which strategy it runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from assignors.java_hash import hash_map_order, java_string_hash

if TYPE_CHECKING:
    from collections.abc import Sequence


def coordinator_partition(group_id: str, offsets_topic_partitions: int) -> int:
    """Find the partition of ``__consumer_offsets`` that holds a group: ``Utils.abs(groupId.hashCode()) % n``.

    ``Utils.abs`` maps the smallest integer to 0; masking the sign bit instead is wrong for every negative hash.
    Raises ValueError when the topic has no partitions. Source: ``GroupCoordinatorService.partitionFor``.

    >>> coordinator_partition("my-group", 50)
    12
    """
    if offsets_topic_partitions < 1:
        raise ValueError("the offsets topic has at least one partition")
    hashed = java_string_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % offsets_topic_partitions


class InconsistentGroupProtocolError(ValueError):
    """No strategy is offered by every member: the coordinator refuses such a join."""


def select_protocol(preferences: Sequence[Sequence[str]]) -> str:
    """Choose the strategy a classic group runs, from each member's offered strategies in its order of preference.

    Candidates are the strategies every member offers; each member votes for its first candidate; most votes win. Equal
    votes go to the first in Java's ``HashMap`` order of the voted names, as ``ClassicGroup.selectProtocol`` does: for
    ``range`` against ``roundrobin`` that is ``range``, whatever the members' order.
    Raises InconsistentGroupProtocolError when no strategy is common to all, or there are no members.

    >>> select_protocol([["range", "cooperative-sticky"], ["cooperative-sticky", "range"], ["range"]])
    'range'
    """
    if not preferences:
        raise InconsistentGroupProtocolError("an empty group has no protocol")
    candidates = set(preferences[0]).intersection(*preferences[1:])
    if not candidates:
        raise InconsistentGroupProtocolError("no assignment strategy is offered by every member")
    votes = Counter(next(name for name in offered if name in candidates) for offered in preferences)
    most = max(votes.values())
    return next(name for name in hash_map_order(votes) if votes[name] == most)
