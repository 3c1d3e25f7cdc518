"""What a sample gives back to groups: facts that they wait for, and the end of those that are gone."""

from __future__ import annotations

import time

from streaming.evaluation.lag.lag import ClusterSample
from streaming.group.listing import GroupListing
from streaming.run.samples.assignors import AssignorRequests
from streaming.run.samples.feedback_writer import FeedbackWriter, PendingFacts, pending_by_group
from streaming.run.samples.reconcile import Reconciler
from streaming.state.monitor_view import MonitorView


class Feedback:
    """One thread's: the sampler's. If coordinators are polled, there is nothing to reconcile or to request."""

    def __init__(
        self, feedback_writer: FeedbackWriter, reconciler: Reconciler | None, assignors: AssignorRequests | None = None
    ) -> None:
        self._feedback_writer = feedback_writer
        self._reconciler = reconciler
        self._assignors = assignors

    def send(self, before: MonitorView, now: MonitorView, listing: GroupListing, sample: ClusterSample) -> bool:
        """Send what groups could know by now; `before` is what was known before the listing.

        Returns whether none of them was waiting.
        """
        pending = pending_by_group(now, sample)
        vanished = self._reconciler.vanished_groups(before, now, listing, sample) if self._reconciler else {}
        now_seconds = time.monotonic()
        assignors = self._assignors.reported(now, listing, now_seconds) if self._assignors else {}
        facts = _both(_both(pending, assignors), vanished)
        self._feedback_writer.send(facts, now_seconds, now.health.batch_seconds or 0)
        return not pending

    def send_vanished(self, now: MonitorView, sample: ClusterSample) -> None:
        """Send which commits are gone."""
        if self._reconciler:
            self._feedback_writer.send_vanished(self._reconciler.vanished_commits(now, sample, time.monotonic()))


def _both(one: PendingFacts, other: PendingFacts) -> PendingFacts:
    return {group_id: (*one.get(group_id, ()), *other.get(group_id, ())) for group_id in {**one, **other}}
