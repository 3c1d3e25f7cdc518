"""Names of all topics by id, as brokers gave them at one time: before a query reads its first records.

Records of KIP-848, share and streams groups name topics by id. Rules:

1. An id that a group holds and that has no name yet gets the name that the brokers gave.
2. If a record is older than the answer and holds an id that the answer lacks, the topic was deleted since: nobody can
   name it any more. Clocks of brokers and monitor may differ by a minute.
3. An id of a later record waits for a sample (`history.awaits_names`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from streaming.group.history import awaits_names
from streaming.group.snapshot import GroupSnapshot

CLOCKS_DIFFER_BY_MS = 60_000


@dataclass(frozen=True, slots=True)
class TopicNames:
    """What brokers answered, and when they were asked; None: they were not."""

    asked_at_ms: int | None = None
    by_id: Mapping[str, str] = field(default_factory=dict)


NO_TOPIC_NAMES = TopicNames()


def add_names(snapshot: GroupSnapshot, names: TopicNames) -> GroupSnapshot:
    """The snapshot with the names that are known (rule 1)."""
    modern = snapshot.modern
    if modern is None or not names.by_id:
        return snapshot
    found = {of: names.by_id[of] for of in sorted(modern.unnamed_topic_ids()) if of in names.by_id}
    return with_names(snapshot, found)


def with_names(snapshot: GroupSnapshot, names: Mapping[str, str]) -> GroupSnapshot:
    """The snapshot with some more names by id; those it has stay."""
    modern = snapshot.modern
    if modern is None or names.keys() <= modern.topic_names.keys():
        return snapshot
    known = msgspec.structs.replace(modern, topic_names={**names, **modern.topic_names})
    return msgspec.structs.replace(snapshot, modern=known)


def waits_for_names(snapshot: GroupSnapshot, names: TopicNames) -> bool:
    """Whether a sample to come can name an id in the snapshot (rules 2 and 3)."""
    asked_at_ms, position = names.asked_at_ms, snapshot.position
    if asked_at_ms is not None and position is not None and position.timestamp_ms + CLOCKS_DIFFER_BY_MS < asked_at_ms:
        return False
    return awaits_names(snapshot)
