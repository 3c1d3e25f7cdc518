"""At each sample, ask coordinators for the assignors of KIP-848 groups (rules: `feedback.assignors`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from kafka.errors import KafkaError

from streaming.evaluation.group_update import GroupState
from streaming.events import CONSUMER
from streaming.feedback.assignors import AssignorRequest, answered_request, is_due, lacks_assignor, pending_assignor
from streaming.group.listing import Description, GroupListing, Unanswered
from streaming.run.samples.feedback_writer import PendingFacts
from streaming.sampling.coordinators import error_name
from streaming.sampling.groups import Groups
from streaming.state.monitor_view import MonitorView

_log = logging.getLogger(__name__)

GROUPS_PER_SAMPLE = 200
MEMBERS_PER_SAMPLE = 2_000
"""Maximum total number of members, because a response describes every member. A larger group is requested alone."""


class AssignorRequests:
    """The requests for assignors, for a limited number of groups per sample.

    Groups without an earlier request come first, then the groups with the oldest requests.
    """

    def __init__(self, cluster: str, groups: Groups) -> None:
        self._cluster = cluster
        self._groups = groups
        self._last: dict[str, AssignorRequest] = {}
        self._reasons: frozenset[str] = frozenset()

    def reported(self, now: MonitorView, listing: GroupListing, now_seconds: float) -> PendingFacts:
        """Send the due requests. Return the reported assignors that are not yet in the group states."""
        lacking = {
            group_id: record
            for group_id, record in now.groups.items()
            if lacks_assignor(record.snapshot) and group_id in listing.groups
        }
        self._last = {group_id: last for group_id, last in self._last.items() if group_id in lacking}
        due = {group_id: lacking[group_id] for group_id in self._due(lacking, now_seconds)}
        if due:
            answers = self._ask(due)
            for group_id, record in due.items():
                self._last[group_id] = answered_request(record.snapshot, answers.get(group_id), now_seconds)
        pending = {one: pending_assignor(record.snapshot, self._last.get(one)) for one, record in lacking.items()}
        return {group_id: (fact,) for group_id, fact in pending.items() if fact is not None}

    def _due(self, lacking: Mapping[str, GroupState], now_seconds: float) -> Iterator[str]:
        due = [one for one, record in lacking.items() if is_due(record, self._last.get(one), now_seconds)]
        due.sort(key=lambda one: self._last[one].asked_seconds if one in self._last else float("-inf"))
        members = 0
        for group_id in due[:GROUPS_PER_SAMPLE]:
            count = lacking[group_id].snapshot.member_count()
            if members and members + count > MEMBERS_PER_SAMPLE:
                return
            members += count
            yield group_id

    def _ask(self, due: Mapping[str, GroupState]) -> Mapping[str, Description]:
        try:
            answers = self._groups.describe_groups(dict.fromkeys(due, CONSUMER))
        except KafkaError as error:
            answers = dict.fromkeys(due, Unanswered(error_name(error)))
        reasons = frozenset(answer.reason for answer in answers.values() if isinstance(answer, Unanswered))
        if reasons - self._reasons:
            _log.warning(
                "%s: coordinators do not report the assignor of some KIP-848 groups: %s",
                self._cluster,
                ", ".join(sorted(reasons)),
            )
        self._reasons |= reasons
        return answers
