"""Selects the incidents of a request.

1. Open incidents come from the monitor state. All other incidents come from the table. After a restart, the monitor
   state contains no incidents until the cluster is ready. Until then, all incidents come from the table.
2. `?group=` selects the incidents that have evidence about this group.
3. Open incidents come first. Among open incidents, the incident with the most groups comes first. Open incidents with
   equally many groups are sorted by start, the newest first. Ended incidents follow, the newest first.
4. While the cluster is not ready, the monitor does not know whether an open incident has ended. An incident that is
   open in the table has possibly ended. The list sorts possibly open incidents like open incidents. Their values come
   from the last sample. Exception: a fresh sample always shows whether a coordinator is missing. So while the last
   sample is fresh, an incident with a missing coordinator is certainly open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streaming.evaluation.incidents.evidence import NO_COORDINATOR
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.incidents.incident_cause import incident_cause
from streaming.evaluation.incidents.story import ADVICE, Story, story
from streaming.evaluation.report import GroupReport
from streaming.page.page_input import CATCHING_UP, READY, WatchedCluster
from streaming.page.rendering import utc_text

MAX_LISTED = 200
"""Maximum number of incidents in a list."""


@dataclass(frozen=True, slots=True)
class IncidentEntry:
    """An incident with its cause, its section of the runbook, and its sentences.

    If `is_current` is False, the monitor does not know whether the incident is still open (rule 4).
    """

    incident: Incident
    cause: str
    runbook_section: str
    story: Story
    is_current: bool

    @property
    def is_open(self) -> bool | None:
        """True if the incident is open, False if it has ended, None if the state is unknown."""
        return self.incident.is_open if self.is_current else None


class KnownIncident(NamedTuple):
    """An incident from the monitor state or from the table. `is_current` has the same meaning as in `IncidentEntry`."""

    incident: Incident
    is_current: bool


@dataclass(frozen=True, slots=True)
class StoredIncidents:
    """Incidents from the table. If the table cannot be read, `error` contains the reason."""

    entries: tuple[IncidentEntry, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentListing:
    """The selected incidents in the order of rule 3. If a table cannot be read, `error` contains the reason.

    `entries` has at most MAX_LISTED incidents. `total` and `open_count` count all selected incidents.
    `possibly_open_count` counts the incidents that are possibly still open (rule 4).
    """

    entries: tuple[IncidentEntry, ...]
    total: int
    open_count: int
    possibly_open_count: int
    error: str | None = None

    @property
    def open(self) -> Sequence[IncidentEntry]:
        """The incidents that were open at the last sample."""
        return [one for one in self.entries if one.incident.is_open]


class IncidentLag(NamedTuple):
    """The lag of the groups of an incident at the last sample.

    `most_behind` is the group with the largest lag in seconds, or None if no group has a known lag above 0 seconds.
    `most_behind` ignores groups with an unknown lag in records. `unknown_groups` counts the groups with an unknown lag.
    """

    most_behind: GroupReport | None = None
    unknown_groups: int = 0


def incident_entry(known: KnownIncident) -> IncidentEntry:
    """Compute the cause, the section of the runbook, and the sentences of an incident."""
    incident, is_current = known
    kind = incident_cause(incident).kind
    return IncidentEntry(incident, kind, ADVICE[kind].runbook_section, story(incident, utc_text), is_current)


def open_incidents(clusters: Sequence[WatchedCluster]) -> Sequence[KnownIncident]:
    """Return the incidents that were open at the last sample, in the order of rule 3."""
    return sorted((one for watched in clusters for one in _at_last_sample(watched)), key=_list_order)


def list_incidents(clusters: Sequence[tuple[WatchedCluster, StoredIncidents]], group_id: str | None) -> IncidentListing:
    """Return the incidents of the clusters (rule 1). If `group_id` is set, select incidents by group (rule 2)."""
    found, error = list[KnownIncident | IncidentEntry](), None
    for watched, stored in clusters:
        current = {one.incident_id for one in watched.view.incidents}
        found += _at_last_sample(watched)
        found += [one for one in stored.entries if one.incident.incident_id not in current]
        error = error or stored.error
    selected = [one for one in found if group_id is None or group_id in one.incident.groups]
    listed = sorted(selected, key=_list_order)[:MAX_LISTED]
    entries = tuple(one if isinstance(one, IncidentEntry) else incident_entry(one) for one in listed)
    possibly_open = sum(not one.is_current for one in selected)
    is_open = sum(one.is_current and one.incident.is_open for one in selected)
    return IncidentListing(entries, len(selected), is_open, possibly_open, error)


def lag_at_last_sample(watched: WatchedCluster, incident: Incident) -> IncidentLag:
    """Return the lag of the groups of an incident. The result is empty if the incident has ended."""
    if not incident.is_open:
        return IncidentLag()
    if watched.phase == CATCHING_UP:
        return IncidentLag(None, incident.group_count)
    all_reports = watched.reports
    reports = [report for group_id in incident.groups if (report := all_reports.get(group_id)) is not None]
    behind = [one for one in reports if one.lag.records is not None and one.lag.seconds]
    most_behind = max(behind, key=lambda one: (one.lag.seconds or 0, one.group_id), default=None)
    return IncidentLag(most_behind, sum(one.is_blocked or bool(one.lag.unknown) for one in reports))


def find_open_incident(watched: WatchedCluster, incident_id: str) -> IncidentEntry | None:
    """Return the incident with this id if it was open at the last sample."""
    for known in _at_last_sample(watched):
        if known.incident.incident_id == incident_id:
            return incident_entry(known)
    return None


def _at_last_sample(watched: WatchedCluster) -> Sequence[KnownIncident]:
    is_ready, is_fresh = watched.phase == READY, watched.is_fresh
    known = []
    for incident in watched.view.incidents:
        lacks_coordinator = any(one.name == NO_COORDINATOR and one.until_ms is None for one in incident.evidence)
        known.append(KnownIncident(incident, is_ready or (is_fresh and lacks_coordinator)))
    return known


def _list_order(known: KnownIncident | IncidentEntry) -> tuple[bool, int, int, str]:
    incident = known.incident
    groups = -incident.group_count if incident.is_open else 0
    return not incident.is_open, groups, -incident.since_ms, incident.incident_id
