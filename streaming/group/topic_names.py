"""Adds topic names to the topic ids in a group's state.

Records of KIP-848, share and streams groups contain topic ids but no topic names. Before a streaming query reads
its first record, the monitor requests the names of all topics from the brokers (`TopicNames`). Rules:

1. If a topic id in the group's state has no name, the monitor adds the name from the brokers' response.
2. If the brokers' response does not contain a topic id, and the record with the id is older than the request, the topic
   was deleted. Its name stays unknown. The clocks of brokers and monitor can differ. So a record counts as older only
   if its timestamp is more than a minute before the request.
3. If a topic id in a later record has no name, the monitor waits for a sample of the topic (`history.awaits_names`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from streaming.group.history import awaits_names
from streaming.group.snapshot import GroupSnapshot

CLOCKS_DIFFER_BY_MS = 60_000
"""Assumed maximum difference, in milliseconds, between the clocks of brokers and monitor."""


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The names in the brokers' response, and the time of the request. The time is None if there was no request."""

    asked_at_ms: int | None = None
    by_id: Mapping[str, str] = field(default_factory=dict)


NO_TOPIC_NAMES = TopicNames()


def add_names(snapshot: GroupSnapshot, names: TopicNames) -> GroupSnapshot:
    """Return the snapshot with the names from the brokers' response (rule 1)."""
    modern = snapshot.modern
    if modern is None or not names.by_id:
        return snapshot
    ids = sorted(modern.unnamed_topic_ids())
    return with_names(snapshot, {topic_id: names.by_id[topic_id] for topic_id in ids if topic_id in names.by_id})


def with_names(snapshot: GroupSnapshot, names: Mapping[str, str]) -> GroupSnapshot:
    """Add names to the topic ids of the snapshot. Names that the snapshot already contains do not change."""
    modern = snapshot.modern
    if modern is None or names.keys() <= modern.topic_names.keys():
        return snapshot
    known = msgspec.structs.replace(modern, topic_names={**names, **modern.topic_names})
    return msgspec.structs.replace(snapshot, modern=known)


def without_taken_names(before: GroupSnapshot, after: GroupSnapshot) -> GroupSnapshot:
    """Return the earlier snapshot without the names of topics that were created again.

    The name of such a topic belongs to a different topic in the later targets. So a comparison uses the old topic id.
    """
    if before.modern is None or after.modern is None:
        return before
    names, ids = after.modern.topic_names, after.modern.target_ids()
    taken = {names[topic_id] for topic_id in ids if topic_id in names}
    earlier = before.modern.topic_names
    kept = {topic_id: topic for topic_id, topic in earlier.items() if topic_id in ids or topic not in taken}
    return msgspec.structs.replace(before, modern=msgspec.structs.replace(before.modern, topic_names=kept))


def waits_for_names(snapshot: GroupSnapshot, names: TopicNames) -> bool:
    """Return True if the name of a topic id is missing, and a later sample can contain it (rules 2 and 3)."""
    asked_at_ms, position = names.asked_at_ms, snapshot.position
    if asked_at_ms is not None and position is not None and position.timestamp_ms + CLOCKS_DIFFER_BY_MS < asked_at_ms:
        return False
    return awaits_names(snapshot)
