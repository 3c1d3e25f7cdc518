"""Find evidence that belongs together (rules 5 to 8 of this package)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from streaming.evaluation.causes import cause
from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP
from streaming.evaluation.conditions.reconciliation import STUCK_RECONCILIATION
from streaming.evaluation.conditions.silence import SILENT_GROUP, STUCK_REBALANCE
from streaming.evaluation.incidents.evidence import LAG_ABOVE_LIMIT, NO_COORDINATOR, RECORDS_LOST, Evidence, EvidenceKey
from streaming.evaluation.incidents.incident import CLIENT_HOST, COORDINATOR, START_WINDOW_MS, TOPIC, Incident, Link
from streaming.evaluation.rebalances.condition_detectors import ENDLESS_COOPERATIVE_REJOIN, REBALANCE_STORM

MIN_COORDINATOR_GROUPS: Final = 5
MAX_LINK_NAMES: Final = 3
COORDINATOR_EVIDENCE: Final = frozenset(
    {
        SILENT_GROUP,
        STUCK_REBALANCE,
        STUCK_RECONCILIATION,
        LONG_COMMIT_GAP,
        REBALANCE_STORM,
        ENDLESS_COOPERATIVE_REJOIN,
        RECORDS_LOST,
        LAG_ABOVE_LIMIT,
        NO_COORDINATOR,
        cause.REBALANCING,
        cause.STOPPED,
        cause.NO_MEMBERS,
        cause.UNKNOWN,
    }
)
"""Names of evidence that a broken coordinator can cause. For example, a coordinator cannot cause a hot partition."""
_LOOPBACK: Final = ("/127.", "/0:0:0:0:0:0:0:1", "/::1")

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Population:
    """The groups with members: all groups, the groups of each coordinator, and the groups on each client host.

    `by_host` contains at least the hosts that occur in the evidence of several groups.
    """

    groups: frozenset[str] = frozenset()
    by_coordinator: Mapping[int, frozenset[str]] = field(default_factory=dict)
    by_host: Mapping[str, frozenset[str]] = field(default_factory=dict)


class LinkedEvidence(NamedTuple):
    """Evidence that belongs together. `link` is None if all evidence is about one group."""

    link: Link | None
    evidence: Sequence[Evidence]


def find_links(
    evidence: Sequence[Evidence], population: Population, full_incidents: Mapping[EvidenceKey, Incident]
) -> Iterator[LinkedEvidence]:
    """Yield sets of linked evidence. A fact can be in several sets.

    `full_incidents` maps each fact that a full incident lists to this incident (rule 13).
    """
    for of_group in _by_keys(evidence, lambda one: (one.group_id,)).values():
        yield LinkedEvidence(None, of_group)
    yield from _coordinator_links(evidence, population, full_incidents)
    for host, naming in _by_keys(evidence, _linking_hosts).items():
        for run in _runs(naming):
            link = Link(CLIENT_HOST, host)
            affected = _affected_groups(run, link, full_incidents)
            on_host = population.by_host.get(host, frozenset()) | affected
            is_everywhere = population.groups <= on_host
            if len(affected) > 1 and 2 * len(affected) >= len(on_host) and not is_everywhere:
                yield LinkedEvidence(link, run)
    for (_, _, topic), naming in _by_keys(evidence, _topic_keys).items():
        for run in _runs(naming):
            if len(_group_ids(run)) > 1:
                yield LinkedEvidence(Link(TOPIC, topic), run)


def shared_hosts(evidence: Iterable[Evidence]) -> frozenset[str]:
    """Return the hosts that occur in the evidence of several groups. Only these hosts can link groups."""
    by_host = _by_keys(evidence, _linking_hosts)
    return frozenset(host for host, naming in by_host.items() if len(_group_ids(naming)) > 1)


def _coordinator_links(
    evidence: Sequence[Evidence], population: Population, full_incidents: Mapping[EvidenceKey, Incident]
) -> Iterator[LinkedEvidence]:
    explainable = [one for one in evidence if one.coordinator is not None and one.name in COORDINATOR_EVIDENCE]
    for broker_id, of_broker in _by_keys(explainable, lambda one: (one.coordinator,)).items():
        all_groups = population.by_coordinator.get(broker_id or 0, frozenset())
        is_only_one = population.groups <= all_groups
        link = Link(COORDINATOR, str(broker_id))
        for run in _runs(of_broker):
            affected, is_gone = _affected_groups(run, link, full_incidents), any(one.is_coordinator_gone for one in run)
            is_enough = len(affected) >= max(MIN_COORDINATOR_GROUPS, len(affected | all_groups) / 2)
            without_coordinator = [one for one in run if one.name == NO_COORDINATOR]
            if is_enough and (is_gone or not is_only_one):
                yield LinkedEvidence(link, run)
            elif len(_group_ids(without_coordinator)) > 1:
                yield LinkedEvidence(link, without_coordinator)


def _linking_hosts(one: Evidence) -> Iterable[str]:
    if len(one.client_hosts) > MAX_LINK_NAMES:
        return ()
    return [host for host in one.client_hosts if not host.startswith(_LOOPBACK)]


def _topic_keys(one: Evidence) -> Iterable[tuple[str, str, str]]:
    return [(one.source, one.name, topic) for topic in one.topics] if len(one.topics) <= MAX_LINK_NAMES else ()


def _by_keys(
    evidence: Iterable[Evidence], keys_of: Callable[[Evidence], Iterable[Key]]
) -> Mapping[Key, Sequence[Evidence]]:
    by_key = defaultdict[Key, list[Evidence]](list)
    for one in evidence:
        for key in keys_of(one):
            by_key[key].append(one)
    return by_key


def _runs(evidence: Iterable[Evidence]) -> Iterator[Sequence[Evidence]]:
    run: list[Evidence] = []
    for one in sorted(evidence, key=lambda each: each.order):
        if run and one.since_ms - run[-1].since_ms > START_WINDOW_MS:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _affected_groups(
    run: Iterable[Evidence], link: Link, full_incidents: Mapping[EvidenceKey, Incident]
) -> frozenset[str]:
    """Return the groups of a run, and all groups of the full incidents that list a fact of the run (rule 13)."""
    found = {full_incidents[one.key].incident_id: full_incidents[one.key] for one in run if one.key in full_incidents}
    return _group_ids(run).union(*(incident.groups for incident in found.values() if link in incident.links))


def _group_ids(evidence: Iterable[Evidence]) -> frozenset[str]:
    return frozenset(one.group_id for one in evidence)
