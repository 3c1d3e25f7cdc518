"""The stored values of an incident. Its cause and its sentences are computed from these values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from streaming.evaluation.incidents.evidence import Evidence

START_WINDOW_MS: Final = 15 * 60_000
QUIET_MS: Final = 10 * 60_000
MAX_EVIDENCE: Final = 500
MAX_LINKS: Final = 20
_ID_LENGTH: Final = 12

LinkKind = Literal["coordinator", "client_host", "topic"]
COORDINATOR: Final = "coordinator"
CLIENT_HOST: Final = "client_host"
TOPIC: Final = "topic"


class Link(NamedTuple):
    """What several groups of an incident have in common: a broker id, a host or a topic."""

    kind: LinkKind
    value: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident. The rules are in the docstring of this package.

    `evidence` is sorted by start, and has at most MAX_EVIDENCE entries. `groups` contains the sorted ids of all
    affected groups (rule 13). `quiet_since_ms` is None while evidence is active. `end_ms` is None while the incident is
    open. For a merged incident, `end_ms` is the time of the merge.
    """

    incident_id: str
    cluster: str
    since_ms: int
    evidence: tuple[Evidence, ...]
    groups: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    quiet_since_ms: int | None = None
    end_ms: int | None = None
    merged_into: str | None = None

    @property
    def is_open(self) -> bool:
        """True if the incident has not ended and has not merged into a different incident."""
        return self.end_ms is None

    @property
    def is_active(self) -> bool:
        """True if the incident is open and evidence is active."""
        return self.is_open and self.quiet_since_ms is None

    @property
    def is_full(self) -> bool:
        """True if the incident cannot list more evidence (rule 13)."""
        return len(self.evidence) >= MAX_EVIDENCE

    @property
    def group_count(self) -> int:
        """The number of affected groups."""
        return len(self.groups)

    @property
    def listed_groups(self) -> frozenset[str]:
        """The ids of the groups whose evidence is listed."""
        return frozenset(one.group_id for one in self.evidence)

    @property
    def active_groups(self) -> tuple[str, ...]:
        """The sorted ids of the groups that have active evidence in `evidence`."""
        return tuple(sorted({one.group_id for one in self.evidence if one.until_ms is None}))

    @property
    def shown_at_groups(self) -> frozenset[str]:
        """The ids of the groups whose reports show this incident.

        The report of a group shows the incident while listed evidence of the group is active. A group without listed
        evidence (rule 13) shows the incident while the incident is active.
        """
        unlisted = frozenset(self.groups) - self.listed_groups if self.quiet_since_ms is None else frozenset()
        return unlisted.union(self.active_groups)

    @property
    def age_order(self) -> tuple[int, str]:
        """The sort key: the oldest incident comes first (rule 11)."""
        return self.since_ms, self.incident_id


def incident_by_group(incidents: Iterable[Incident]) -> Mapping[str, Incident]:
    """Map each group id to the incident that the group's report shows: the oldest incident of the group."""
    newest_first = sorted(incidents, key=lambda one: one.age_order, reverse=True)
    return {group_id: one for one in newest_first for group_id in one.shown_at_groups}


def make_incident_id(cluster: str, first: Evidence) -> str:
    """Return the id of the incident that the given evidence opens (rule 12).

    >>> first = Evidence("condition", "rebalance_storm", "orders", "rebalance storm", 1_795_300_000_000)
    >>> make_incident_id("prod", first)
    '8d7442772e8d'
    """
    identity = json.dumps([cluster, first.source, first.name, first.group_id, first.since_ms])
    return sha256(identity.encode()).hexdigest()[:_ID_LENGTH]
