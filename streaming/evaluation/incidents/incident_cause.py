"""Name the cause of an incident. The first rule that applies determines the cause.

While evidence of a cause is active, the rules ignore causes whose evidence has ended. So the advice fits the present
problem. If no such evidence is active, the rules use all evidence that the incident lists. So the cause remains while
the group catches up, and after the end of the incident. In these rules, "all groups" means all groups with listed
evidence.

1. `coordinator_gone`: a coordinator links groups of the incident (`same_cause.py`), and leads no partition of
   `__consumer_offsets` any more. At least half of all groups must have this coordinator, and evidence that a
   coordinator can cause (COORDINATOR_EVIDENCE).
2. `coordinator`: the same as rule 1, except that the coordinator may still lead partitions of `__consumer_offsets`.
3. `client_host`: a host links groups, and at least half of all groups have evidence that names the host.
4. The cause is the first name in PRECEDENCE that occurs in the evidence of at least half of all groups. If there is no
   such name, the cause is the first name in PRECEDENCE that occurs in any evidence. In PRECEDENCE, a problem comes
   before the problems that it can cause. For example, a hot partition can cause lag, and lag can cause lost records.
   REWOUND comes after all other causes of lag, because a rewound partition can have few unread records.
5. `unknown`: the lag is above a limit, and its cause is unknown. This rule applies only if no other rule applies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streaming.evaluation.causes import cause
from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING
from streaming.evaluation.conditions.reconciliation import STUCK_RECONCILIATION
from streaming.evaluation.conditions.silence import SILENT_GROUP, SILENT_STATIC_MEMBER, STUCK_REBALANCE
from streaming.evaluation.incidents.evidence import NO_COORDINATOR, RECORDS_LOST, REWOUND, Evidence
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
    cause.OPEN_TRANSACTION,
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
    REWOUND,
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
    def is_active(self) -> bool:
        """True if active evidence shows the cause."""
        return any(one.until_ms is None for one in self.evidence)

    @property
    def first(self) -> Evidence:
        """The earliest active evidence that shows the cause. If none is active, the earliest evidence."""
        return min(self.evidence, key=lambda one: (one.until_ms is not None, one.order))

    @property
    def groups(self) -> tuple[str, ...]:
        """The sorted ids of the groups whose evidence shows the cause."""
        return tuple(sorted({one.group_id for one in self.evidence}))


def incident_cause(incident: Incident) -> IncidentCause:
    """Return the cause of an incident."""
    named = [IncidentCause(name, _with_name(incident, name)) for name in PRECEDENCE]
    possible = [one for one in (*_linked_causes(incident), *named) if one.evidence]
    possible = [one for one in possible if one.is_active] or possible
    common = [one for one in possible if 2 * len(one.groups) >= len(incident.listed_groups)]
    return next(iter((*common, *(one for one in possible if not one.value))), IncidentCause(UNKNOWN, incident.evidence))


def _with_name(incident: Incident, name: str) -> tuple[Evidence, ...]:
    return tuple(one for one in incident.evidence if one.name == name)


def _linked_causes(incident: Incident) -> Iterable[IncidentCause]:
    """Return the causes of rules 1 to 3: first brokers, then hosts, each with the most groups first."""
    of_brokers, of_hosts = list[IncidentCause](), list[IncidentCause]()
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
    return [one for linked in (of_brokers, of_hosts) for one in sorted(linked, key=lambda each: -len(each.groups))]
