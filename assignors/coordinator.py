"""Two decisions of the group coordinator: which broker partition holds a group, and which strategy it runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from assignors.ordering import utf16_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def java_string_hash(text: str) -> int:
    """Compute Java's ``String.hashCode``: a signed 32-bit number over UTF-16 code units.

    >>> java_string_hash("my-group")
    -1906497762
    """
    units = utf16_key(text)
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    return value - (1 << 32) if value & 0x8000_0000 else value


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
    return next(name for name in _hash_map_order(votes) if votes[name] == most)


def _hash_map_order(names: Iterable[str]) -> list[str]:
    """List names as a ``java.util.HashMap`` iterates them: by bucket; inside one by time of insertion."""
    listed = list(names)
    buckets = 16
    while len(listed) > buckets * 3 // 4:
        buckets *= 2
    return sorted(listed, key=lambda name: _spread(java_string_hash(name)) & (buckets - 1))


def _spread(hashed: int) -> int:
    unsigned = hashed & 0xFFFF_FFFF
    return unsigned ^ (unsigned >> 16)
