"""Values for tests of incidents: evidence, groups, and a monitor that follows incidents from sample to sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.delta.cells import Row
from streaming.delta.incident_rows import incident_row, restore_incident
from streaming.delta.rows import arrow_table
from streaming.delta.tables import INCIDENTS
from streaming.evaluation.incidents.evidence import Evidence, EvidenceKey, Source
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.incidents.same_cause import Population
from streaming.evaluation.incidents.story import story
from streaming.evaluation.incidents.tracker import SampledEvidence, advance_incidents
from streaming.page.rendering import utc_text

CLUSTER, START_MS, MINUTE_MS = "prod", 1_795_300_000_000, 60_000


def evidence(  # noqa: PLR0913 - the fields of evidence
    name: str,
    group_id: str = "orders",
    minute: float = 0,
    *,
    source: Source = "condition",
    coordinator: int | None = None,
    is_gone: bool = False,
    hosts: Sequence[str] = (),
    topics: Sequence[str] = (),
) -> Evidence:
    """Return active evidence that started at a minute."""
    return Evidence(
        source,
        name,
        group_id,
        name.replace("_", " "),
        at_minute(minute),
        coordinator=coordinator,
        is_coordinator_gone=is_gone,
        client_hosts=tuple(hosts),
        topics=tuple(topics),
    )


def at_minute(minute: float) -> int:
    """Return a time in milliseconds."""
    return START_MS + int(minute * MINUTE_MS)


def population(by_coordinator: Mapping[int, Iterable[str]], by_host: Mapping[str, Iterable[str]] = {}) -> Population:
    """Return the groups with members."""
    coordinators = {broker_id: frozenset(groups) for broker_id, groups in by_coordinator.items()}
    hosts = {host: frozenset(groups) for host, groups in by_host.items()}
    return Population(frozenset().union(*coordinators.values(), *hosts.values()), coordinators, hosts)


@dataclass
class Followed:
    """Incidents that are followed from sample to sample. With `restarts`, each sample comes after a restart."""

    population: Population = field(default_factory=Population)
    restarts: bool = False
    open: Sequence[Incident] = ()
    rows: list[Row] = field(default_factory=list)

    def sample(
        self, minute: float, active: Sequence[Evidence] = (), unknown: Collection[EvidenceKey] = ()
    ) -> Sequence[Incident]:
        """Take a sample. Return the open incidents."""
        sampled = SampledEvidence(CLUSTER, at_minute(minute), active, unknown, self.population)
        update = advance_incidents(self._restored() if self.restarts else self.open, sampled)
        rows = [incident_row(at_minute(minute), one, story(one, utc_text)) for one in update.changed]
        self.rows += arrow_table(INCIDENTS, rows).to_pylist()
        self.open = update.open
        return update.open

    def _restored(self) -> list[Incident]:
        last = {row["incident_id"]: row for row in self.rows}
        return [restore_incident(row) for row in reversed(last.values()) if row["active"]]

    def last(self) -> Mapping[str, Row]:
        """Return the last row of each incident."""
        return {row["incident_id"]: row for row in self.rows}
