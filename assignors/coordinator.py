"""Computes which `__consumer_offsets` partition belongs to a group, and which strategy a classic group uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from assignors.java_hash import hash_map_order, java_string_hash

EAGER_STRATEGIES = frozenset({"range", "roundrobin", "sticky"})
"""Kafka's eager strategies. With an eager strategy, members revoke all partitions before they join (KIP-429)."""


@lru_cache(maxsize=100_000)
def coordinator_partition(group_id: str, offsets_topic_partitions: int) -> int:
    """Return the ``__consumer_offsets`` partition of a group: ``Utils.abs(groupId.hashCode()) % n``.

    ``Utils.abs`` maps the smallest 32-bit integer to 0. Raises ValueError if the topic has no partitions. Source:
    ``GroupCoordinatorService.partitionFor``.

    >>> coordinator_partition("my-group", 50)
    12
    """
    if offsets_topic_partitions < 1:
        raise ValueError("the offsets topic must have at least one partition")
    hashed = java_string_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % offsets_topic_partitions


class InconsistentGroupProtocolError(ValueError):
    """Error: the members of a group have no strategy in common."""


def select_protocol(preferences: Sequence[Sequence[str]]) -> str:
    """Choose the strategy of a classic group. Each member sends a list of strategies, its preferred strategy first.

    A strategy is a candidate if every member lists it. Each member votes for the first candidate in its list. The
    candidate with the most votes wins. In a tie, the candidate that comes first in the order of Java's ``HashMap`` wins
    (``ClassicGroup.selectProtocol``). For example, if ``range`` and ``roundrobin`` have the same number of votes,
    ``range`` always wins. Raises InconsistentGroupProtocolError if no strategy is common to all members, or if the
    group has no members.

    >>> select_protocol([["range", "cooperative-sticky"], ["cooperative-sticky", "range"], ["range"]])
    'range'
    """
    if not preferences:
        raise InconsistentGroupProtocolError("an empty group has no protocol")
    candidates = set(preferences[0]).intersection(*preferences[1:])
    if not candidates:
        raise InconsistentGroupProtocolError("no assignment strategy is common to all members")
    votes = Counter(next(name for name in offered if name in candidates) for offered in preferences)
    most = max(votes.values())
    return next(name for name in hash_map_order(votes) if votes[name] == most)
