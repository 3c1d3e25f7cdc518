"""Describe an incident in plain sentences. Pages, the API and the table show the sentences of an incident.

A full incident does not list all its facts (rule 13). So numbers from the list of a full incident are lower bounds, and
the sentences contain `at least`. If no evidence is active, the sentences are in the past tense. Exception: the text of
evidence never changes.

While records are lost, the advice against the loss comes first, whatever the cause is. Nobody can bring lost records
back, so the loss must stop before somebody looks for the cause.

The sentences contain no value that changes at each sample, for example no present lag. So the table does not need a
new row at each sample. The evidence "lag above the limit" can be active while the lag is below the limit
(LAG_END_RATIO). So no sentence claims that the lag is above the limit now. Names of groups, hosts and topics come from
clients. Every caller must escape the names.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, NamedTuple

from streaming.evaluation.causes import cause as lag_cause
from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING
from streaming.evaluation.conditions.reconciliation import STUCK_RECONCILIATION
from streaming.evaluation.conditions.silence import SILENT_GROUP, SILENT_STATIC_MEMBER, STUCK_REBALANCE
from streaming.evaluation.incidents.evidence import LAG_ABOVE_LIMIT, NO_COORDINATOR, RECORDS_LOST, REWOUND
from streaming.evaluation.incidents.incident import CLIENT_HOST, COORDINATOR, Incident
from streaming.evaluation.incidents.incident_cause import COORDINATOR_GONE, UNKNOWN, IncidentCause, incident_cause
from streaming.evaluation.phrases import counted, name_in_text, named
from streaming.evaluation.rebalances.condition_detectors import (
    DUPLICATE_CLAIMS,
    EAGER_AND_COOPERATIVE_MIXED,
    ENDLESS_COOPERATIVE_REJOIN,
    FLAPPING_MEMBER,
    REBALANCE_STORM,
    UNOWNED_PARTITIONS,
)

TimeText = Callable[[int], str]
"""A function that returns a time as text, in UTC."""


class Story(NamedTuple):
    """An incident in sentences, one field for each question."""

    what_happened: str
    since_when: str
    who: str
    how_bad: str
    what_now: str


class Advice(NamedTuple):
    """What to do first, and the section of the runbook with all steps."""

    sentence: str
    runbook_section: str


ADVICE: Final = MappingProxyType(
    {
        COORDINATOR_GONE: Advice(
            "If the broker is down, start it. Check the replicas of __consumer_offsets. Restart members only after the"
            " groups can commit again.",
            "KafkaCoordinatorTrouble",
        ),
        COORDINATOR: Advice("Check the log, the disks and the network of the broker.", "KafkaCoordinatorTrouble"),
        CLIENT_HOST: Advice("Check CPU, memory, disk and network of the host.", "KafkaGroupLagging"),
        NO_COORDINATOR: Advice(
            "If the broker that led the partition of __consumer_offsets is down, start it. Check the replicas of the"
            " partition. Restart members only after the group can commit again.",
            "KafkaCoordinatorTrouble",
        ),
        lag_cause.HOT_PARTITION: Advice("Find the most frequent key of the partition.", "KafkaGroupLagging"),
        lag_cause.SLOW_HOST: Advice("Check CPU, memory, disk and network of the host.", "KafkaGroupLagging"),
        lag_cause.SLOW_MEMBER: Advice("Restart the slow member.", "KafkaGroupLagging"),
        lag_cause.ASSIGNMENT: Advice(
            "Open the page of the group, and compare the strategies in the what-if tables.", "KafkaGroupLagging"
        ),
        lag_cause.UNDER_PROVISIONED: Advice(
            "Make the processing faster, or add members. A group cannot use more members than partitions.",
            "KafkaGroupLagging",
        ),
        lag_cause.REBALANCING: Advice(
            "Open the page of the group, and find the reason for the rebalances.", "KafkaRebalanceStorm"
        ),
        lag_cause.STOPPED: Advice(
            "Read the logs of the members. Then start or restart the members.", "KafkaGroupStopped"
        ),
        lag_cause.OPEN_TRANSACTION: Advice(
            "Find the producer of the open transaction, and restart this producer. If the producer no longer exists,"
            " abort the transaction.",
            "KafkaGroupLagging",
        ),
        lag_cause.NO_MEMBERS: Advice("If the application is down, start it.", "KafkaGroupWithoutMembers"),
        REBALANCE_STORM: Advice(
            "Read the logs of the members to find out why members leave or rejoin.", "KafkaRebalanceStorm"
        ),
        FLAPPING_MEMBER: Advice(
            "If the other members can do the work, stop the member that joins and leaves again and again.",
            "KafkaRebalanceStorm",
        ),
        STUCK_REBALANCE: Advice("Restart the member that does not respond.", "KafkaRebalanceStuck"),
        STUCK_RECONCILIATION: Advice("Restart the member that does not respond.", "KafkaRebalanceStuck"),
        SILENT_GROUP: Advice("Read the logs of the members. Then restart the members.", "KafkaGroupSilent"),
        SILENT_STATIC_MEMBER: Advice("Restart the static member that does not commit.", "KafkaStaticMemberSilent"),
        UNOWNED_PARTITIONS: Advice(
            "Restart the group leader. In a KIP-848 group, restart any member.", "KafkaPartitionsUnowned"
        ),
        LONG_COMMIT_GAP: Advice("Read the logs of the members to find the slow member.", "KafkaCommitGapLong"),
        DUPLICATE_CLAIMS: Advice(
            "Find out why one of the members lost contact with the coordinator.", "KafkaProtocolFault"
        ),
        EAGER_AND_COOPERATIVE_MIXED: Advice("Configure the same strategies for all members.", "KafkaProtocolFault"),
        ENDLESS_COOPERATIVE_REJOIN: Advice("Restart the group leader.", "KafkaProtocolFault"),
        SUBSCRIBED_TOPIC_MISSING: Advice(
            "Correct the name of the topic in the configuration of the members, or create the topic.",
            "KafkaProtocolFault",
        ),
        REWOUND: Advice(
            "Find out who reset the offsets. If nobody reset the offsets, search the logs of the members for the"
            " reason.",
            "KafkaGroupRewound",
        ),
        RECORDS_LOST: Advice(
            "Increase the retention of the topic. Keep the new value until the group has caught up.", "KafkaRecordsLost"
        ),
        UNKNOWN: Advice("Open the page of the group, and compare the members.", "KafkaGroupLagging"),
    }
)


def headline(incident: Incident) -> str:
    """Return what happened, and how many other groups are affected."""
    return _headline(incident, incident_cause(incident))


def _headline(incident: Incident, cause: IncidentCause) -> str:
    others = incident.group_count - len(cause.groups)
    also = f" {counted(others, 'more group')} {_are(incident, others)} affected." if others else ""
    if others and incident.is_full:
        also = f" {incident.group_count} groups {_are(incident)} affected in total."
    return f"{_what_happened(incident, cause)}.{also}"


def _are(incident: Incident, groups: int = 2) -> str:
    """Return `is`, `are`, `was` or `were`. The verb is in the past tense if no evidence is active."""
    present, past = ("is", "was") if groups == 1 else ("are", "were")
    return present if incident.is_active else past


def _at_least(incident: Incident) -> str:
    return "at least " if incident.is_full else ""


def story(incident: Incident, time_text: TimeText) -> Story:
    """Return the incident in sentences."""
    cause = incident_cause(incident)
    return Story(
        what_happened=_headline(incident, cause),
        since_when=_since_when(incident, cause, time_text),
        who=_who(incident),
        how_bad=_how_bad(incident),
        what_now=_what_now(incident, cause),
    )


def _what_now(incident: Incident, cause: IncidentCause) -> str:
    if incident.merged_into is not None:
        return f"See the older incident {incident.merged_into}. It now contains this incident."
    advice = ADVICE[cause.kind]
    if not incident.is_active:
        return f"The problem has ended. If it returns, see the section {advice.runbook_section} of the runbook."
    if not cause.is_active:
        return (
            "This problem has ended, but the lag still counts as too large. If the lag does not decrease, see the"
            f" section {ADVICE[UNKNOWN].runbook_section} of the runbook."
        )
    is_losing = any(one.name == RECORDS_LOST and one.until_ms is None for one in incident.evidence)
    first = [ADVICE[RECORDS_LOST]] if is_losing and cause.kind != RECORDS_LOST else []
    return " ".join(
        f"{one.sentence} The section {one.runbook_section} of the runbook describes all steps."
        for one in (*first, advice)
    )


def _what_happened(incident: Incident, cause: IncidentCause) -> str:
    at_least, is_active = _at_least(incident), incident.is_active
    groups, first = f"{at_least}{counted(len(cause.groups), 'group')}", cause.first
    if cause.kind == COORDINATOR_GONE:
        coordinates = "coordinates" if is_active else "coordinated"
        are = _are(incident, len(cause.groups))
        return f"Broker {cause.value} no longer {coordinates} groups, and {groups} of this broker {are} affected"
    if cause.kind == COORDINATOR:
        return f"Problems started within a short time in {groups} with the same coordinator, broker {cause.value}"
    if cause.kind == CLIENT_HOST:
        have = "have" if is_active else "had"
        return f"On the host {cause.value.removeprefix('/')}, members of {groups} {have} a problem"
    if cause.kind == UNKNOWN:
        return f"The lag of {named(cause.groups)} exceeded the limit, and the cause is unknown"
    more = f"{at_least}{counted(len(cause.groups) - 1, 'more group')}"
    more = f" ({more} with the same problem)" if cause.groups[1:] else ""
    return f"Group {name_in_text(first.group_id)}: {first.text}{more}"


def _since_when(incident: Incident, cause: IncidentCause, time_text: TimeText) -> str:
    text = f"The incident started at {time_text(incident.since_ms)}."
    earliest_ms = incident.evidence[0].since_ms
    if earliest_ms < incident.since_ms:
        text += f" The earliest problem started at {time_text(earliest_ms)}, but was added to the incident later."
    if cause.evidence[0].since_ms > incident.since_ms:
        text += f" The cause started at {time_text(cause.evidence[0].since_ms)}."
    if incident.merged_into is None and incident.quiet_since_ms is not None:
        last = time_text(incident.quiet_since_ms)
        text += f" No problem has been active since {last}." if incident.is_open else f" The incident ended at {last}."
    return text


def _who(incident: Incident) -> str:
    if incident.group_count == 1:
        return f"Only the group {name_in_text(incident.groups[0])} {_are(incident, 1)} affected."
    recovered = len(incident.listed_groups) - len(incident.active_groups) if incident.is_active else 0
    also = _capitalized(f"{_at_least(incident)}{counted(recovered, 'group')} recovered.")
    text = f"{incident.group_count} groups {_are(incident)} affected: {named(incident.groups)}."
    return f"{text} {also}" if recovered else text


def _how_bad(incident: Incident) -> str:
    at_least = _at_least(incident)
    losing = {one.group_id for one in incident.evidence if one.name == RECORDS_LOST}
    late = {one.group_id for one in incident.evidence if one.name == LAG_ABOVE_LIMIT}
    without_coordinator = [one for one in incident.evidence if one.name == NO_COORDINATOR]
    orphaned = {one.group_id for one in without_coordinator if one.until_ms is None or not incident.is_active}
    if losing:
        groups = f"{at_least}{counted(len(losing), 'group')}"
        return f"Retention deleted records that {groups} had not read: {named(losing)}."
    if orphaned:
        groups = _capitalized(f"{at_least}{counted(len(orphaned), 'group')}")
        if not incident.is_active:
            again = "If a member restarted, the records since its last commit were processed twice."
            return f"{groups} could not commit. {again}"
        return f"{groups} cannot commit. If a member restarts, the records since its last commit are processed twice."
    lost = "The listed evidence shows no lost records" if incident.is_full else "The monitor has seen no lost records"
    if late:
        whose = "" if incident.group_count == 1 else f" of {at_least}{counted(len(late), 'group')}"
        return f"{lost}. The lag{whose} exceeded the limit."
    return f"{lost} and no lag above the limit."


def _capitalized(sentence: str) -> str:
    """Return the sentence with an upper-case first letter. Names in the sentence keep their case.

    >>> _capitalized("at least 2 groups of OrderService")
    'At least 2 groups of OrderService'
    """
    return sentence[:1].upper() + sentence[1:]
