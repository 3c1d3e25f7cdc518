"""Follow incidents from sample to sample (rules 1, 3 and 9 to 16 of this package)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streaming.evaluation.incidents.evidence import Evidence, EvidenceKey
from streaming.evaluation.incidents.incident import (
    COORDINATOR,
    MAX_EVIDENCE,
    MAX_LINKS,
    QUIET_MS,
    Incident,
    Link,
    make_incident_id,
)
from streaming.evaluation.incidents.same_cause import Population, find_links


@dataclass(frozen=True, slots=True)
class SampledEvidence:
    """All evidence at one sample. `unknown` contains evidence that may be active (rule 3)."""

    cluster: str
    sampled_at_ms: int
    active: Sequence[Evidence] = ()
    unknown: Collection[EvidenceKey] = frozenset()
    population: Population = field(default_factory=Population)


class IncidentUpdate(NamedTuple):
    """The open incidents, and the incidents that opened, changed, ended or merged. The oldest comes first."""

    open: tuple[Incident, ...]
    changed: tuple[Incident, ...]


@dataclass(slots=True)
class _Component:
    incidents: list[Incident] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    links: set[Link] = field(default_factory=set)


def advance_incidents(known: Sequence[Incident], sampled: SampledEvidence) -> IncidentUpdate:
    """Update the open incidents with a sample. `known` contains the open incidents before the sample, in any order."""
    is_open, changed = [], []
    before = {one.incident_id: one for one in known}
    known = [_incident_until_now(one, sampled.sampled_at_ms) for one in known]
    active = [_evidence_until_now(one, sampled.sampled_at_ms) for one in sampled.active]
    for component in _components(known, replace(sampled, active=active)):
        survivor, *merged = _next_incidents(component, sampled)
        changed += merged
        if survivor.is_open:
            is_open.append(survivor)
        if survivor != before.get(survivor.incident_id):
            changed.append(survivor)
    return IncidentUpdate(_by_age(is_open), _by_age(changed))


def _incident_until_now(one: Incident, now_ms: int) -> Incident:
    """Apply rule 16 to an open incident."""
    evidence = tuple(_evidence_until_now(each, now_ms) for each in one.evidence)
    quiet_since_ms = None if one.quiet_since_ms is None else min(one.quiet_since_ms, now_ms)
    return replace(one, since_ms=min(one.since_ms, now_ms), evidence=evidence, quiet_since_ms=quiet_since_ms)


def _evidence_until_now(one: Evidence, now_ms: int) -> Evidence:
    """Apply rule 16 to evidence."""
    if max(one.since_ms, one.until_ms or 0) <= now_ms:
        return one
    until_ms = None if one.until_ms is None else min(one.until_ms, now_ms)
    return replace(one, since_ms=min(one.since_ms, now_ms), until_ms=until_ms)


def _components(known: Sequence[Incident], sampled: SampledEvidence) -> Iterator[_Component]:
    """Divide the open incidents and the evidence into components. All parts of a component are linked."""
    active = {one.key: one for one in sampled.active}
    held = [(incident, _at_sample(one, active, sampled)) for incident in known for one in incident.evidence]
    held_keys = {one.key for _, one in held}
    new = [one for key, one in active.items() if key not in held_keys]
    sets = _DisjointSets()
    for incident, one in held:
        sets.join(incident.incident_id, one.key)
    incident_by_group = {group_id: incident for incident in known if incident.is_full for group_id in incident.groups}
    for one in new:
        if one.group_id in incident_by_group:
            sets.join(incident_by_group[one.group_id].incident_id, one.key)
    linking = [*(one for _, one in held), *(one for one in new if one.group_id not in incident_by_group)]
    full_incidents = {one.key: incident for incident, one in held if incident.is_full}
    links = list(find_links(linking, sampled.population, full_incidents))
    for linked in links:
        for one in linked.evidence:
            sets.join(linked.evidence[0].key, one.key)
    components: dict[object, _Component] = {}
    for incident in known:
        components.setdefault(sets.root(incident.incident_id), _Component()).incidents.append(incident)
    for one in (*(one for _, one in held), *new):
        components.setdefault(sets.root(one.key), _Component()).evidence.append(one)
    for link, evidence in links:
        components[sets.root(evidence[0].key)].links.update([] if link is None else [link])
    yield from components.values()


def _at_sample(one: Evidence, active: Mapping[EvidenceKey, Evidence], sampled: SampledEvidence) -> Evidence:
    """Return the evidence after this sample (rules 1 and 3)."""
    if one.key in active:
        return one if one.until_ms is None else replace(one, until_ms=None)
    is_unchanged = one.until_ms is not None or one.key in sampled.unknown
    return one if is_unchanged else replace(one, until_ms=sampled.sampled_at_ms)


def _next_incidents(component: _Component, sampled: SampledEvidence) -> Iterator[Incident]:
    """Yield the incident of a component, then the incidents that merged into it (rules 9 to 12)."""
    by_key: dict[EvidenceKey, Evidence] = {}
    for one in sorted(component.evidence, key=lambda each: each.order):
        by_key.setdefault(one.key, one)
    evidence = tuple(by_key.values())
    oldest, *younger = _by_age(component.incidents) or (
        Incident(make_incident_id(sampled.cluster, evidence[0]), sampled.cluster, evidence[0].since_ms, ()),
    )
    quiet_since_ms = None
    if all(one.until_ms is not None for one in evidence):
        known = [one.quiet_since_ms for one in component.incidents if one.quiet_since_ms is not None]
        is_still_quiet = len(known) == len(component.incidents)
        quiet_since_ms = max(known) if is_still_quiet else sampled.sampled_at_ms
    has_ended = quiet_since_ms is not None and sampled.sampled_at_ms - quiet_since_ms >= QUIET_MS
    links = component.links.union(*(one.links for one in component.incidents))
    coordinators_first = sorted(links, key=lambda link: (link.kind != COORDINATOR, link))
    yield replace(
        oldest,
        evidence=evidence[:MAX_EVIDENCE],
        groups=tuple(sorted({one.group_id for one in evidence}.union(*(one.groups for one in component.incidents)))),
        links=tuple(coordinators_first[:MAX_LINKS]),
        quiet_since_ms=quiet_since_ms,
        end_ms=quiet_since_ms if has_ended else None,
    )
    for other in younger:
        yield replace(other, end_ms=sampled.sampled_at_ms, merged_into=oldest.incident_id)


def _by_age(incidents: Iterable[Incident]) -> tuple[Incident, ...]:
    return tuple(sorted(incidents, key=lambda one: one.age_order))


class _DisjointSets:
    """Disjoint sets (union-find). The result does not depend on the order of the calls."""

    def __init__(self) -> None:
        self._parents: dict[object, object] = {}

    def root(self, thing: object) -> object:
        """Return the representative of the set that contains `thing`."""
        while (parent := self._parents.get(thing, thing)) != thing:
            self._parents[thing] = self._parents.get(parent, parent)
            thing = parent
        return thing

    def join(self, one: object, other: object) -> None:
        """Unite the sets of `one` and `other`."""
        self._parents[self.root(one)] = self.root(other)
