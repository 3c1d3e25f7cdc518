"""Name the cause of an incident. The first rule that applies determines the cause.

The rules use all evidence that the incident lists, including evidence that has ended. So the cause does not change when
evidence ends. In these rules, "all groups" means all groups with listed evidence.

1. `coordinator_gone`: a coordinator links groups of the incident (`same_cause.py`), and leads no partition of
   `__consumer_offsets` any more. At least half of all groups must have this coordinator, and evidence that a
   coordinator can cause (COORDINATOR_EVIDENCE).
2. `coordinator`: the same as rule 1, except that the coordinator may still lead partitions of `__consumer_offsets`.
3. `client_host`: a host links groups, and at least half of all groups have evidence that names the host.
4. The cause is the first name in PRECEDENCE that occurs in the evidence of at least half of all groups. If there is no
   such name, the cause is the first name in PRECEDENCE that occurs in any evidence. In PRECEDENCE, a problem comes
   before the problems that it can cause. For example, a hot partition can cause lag, and lag can cause lost records.
5. `unknown`: the lag is above a limit, and its cause is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streaming.evaluation.causes import cause
from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING
from streaming.evaluation.conditions.reconciliation import STUCK_RECONCILIATION
from streaming.evaluation.conditions.silence import SILENT_GROUP, SILENT_STATIC_MEMBER, STUCK_REBALANCE
from streaming.evaluation.incidents.evidence import NO_COORDINATOR, RECORDS_LOST, Evidence
from streaming.evaluation.incidents.incident import CLIENT_HOST, COORDINATOR, Incident
from streaming.evaluation.incidents.same_cause import COORDINATOR_EVIDENCE
from streaming.evaluation.rebalances.condition_detectors import (
    DUPLICATE_CLAIMS,
    EAGER_AND_COOPERATIVE_MIXED,
    ENDLESS_COOPERATIVE_REJOIN,
    FLAPPING_MEMBER,
    REBALANCE_STORM,
    UNOWNED_PARTITIONS,
)

COORDINATOR_GONE: Final = "coordinator_gone"
UNKNOWN: Final = cause.UNKNOWN

PRECEDENCE: Final = (
    NO_COORDINATOR,
    cause.HOT_PARTITION,
    cause.SLOW_HOST,
    cause.SLOW_MEMBER,
    SUBSCRIBED_TOPIC_MISSING,
    DUPLICATE_CLAIMS,
    EAGER_AND_COOPERATIVE_MIXED,
    ENDLESS_COOPERATIVE_REJOIN,
    FLAPPING_MEMBER,
    cause.ASSIGNMENT,
    cause.UNDER_PROVISIONED,
    STUCK_REBALANCE,
    STUCK_RECONCILIATION,
    SILENT_STATIC_MEMBER,
    SILENT_GROUP,
    UNOWNED_PARTITIONS,
    REBALANCE_STORM,
    cause.NO_MEMBERS,
    cause.REBALANCING,
    cause.STOPPED,
    LONG_COMMIT_GAP,
    RECORDS_LOST,
)


@dataclass(frozen=True, slots=True)
class IncidentCause:
    """The cause of an incident. `evidence` contains the evidence that shows the cause, sorted by start.

    `value` is the broker id or the host that is the cause (rules 1 to 3).
    """

    kind: str
    evidence: tuple[Evidence, ...]
    value: str = ""

    @property
    def first(self) -> Evidence:
        """The earliest evidence that shows the cause."""
        return self.evidence[0]

    @property
    def groups(self) -> tuple[str, ...]:
        """The sorted ids of the groups whose evidence shows the cause."""
        return tuple(sorted({one.group_id for one in self.evidence}))


def incident_cause(incident: Incident) -> IncidentCause:
    """Return the cause of an incident."""
    of_brokers: list[IncidentCause] = []
    of_hosts: list[IncidentCause] = []
    for kind, value in incident.links:
        if kind == COORDINATOR:
            found = tuple(
                one for one in incident.evidence if str(one.coordinator) == value and one.name in COORDINATOR_EVIDENCE
            )
            is_gone = any(one.is_coordinator_gone for one in found)
            of_brokers.append(IncidentCause(COORDINATOR_GONE if is_gone else COORDINATOR, found, value))
        elif kind == CLIENT_HOST:
            found = tuple(one for one in incident.evidence if value in one.client_hosts)
            of_hosts.append(IncidentCause(CLIENT_HOST, found, value))
    for linked in (of_brokers, of_hosts):
        largest = max(linked, key=lambda one: len(one.groups), default=None)
        if largest is not None and 2 * len(largest.groups) >= len(incident.listed_groups):
            return largest
    return _named_cause(incident)


def _named_cause(incident: Incident) -> IncidentCause:
    evidence, groups = incident.evidence, len(incident.listed_groups)
    by_name = {name: tuple(one for one in evidence if one.name == name) for name in PRECEDENCE}
    found = [IncidentCause(name, showing) for name, showing in by_name.items() if showing]
    common = [one for one in found if 2 * len(one.groups) >= groups]
    return next(iter((*common, *found)), IncidentCause(UNKNOWN, evidence))
