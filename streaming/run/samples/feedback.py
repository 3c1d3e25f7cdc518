"""After each sample, send feedback to the query: sampled topics, reported assignors, and deleted groups and commits."""

from __future__ import annotations

import time
from dataclasses import dataclass

from streaming.evaluation.lag.lag import ClusterSample
from streaming.group.listing import GroupListing
from streaming.run.samples.assignors import AssignorRequests
from streaming.run.samples.feedback_writer import FeedbackWriter, PendingFacts, pending_by_group
from streaming.run.samples.reconcile import Reconciler
from streaming.state.monitor_view import MonitorView


@dataclass(frozen=True, slots=True)
class Feedback:
    """The feedback of one cluster. Only the sampler's thread calls the methods.

    In the polling mode, there is no reconciler and no assignors, because polls contain deletions and assignors.
    """

    _feedback_writer: FeedbackWriter
    _reconciler: Reconciler | None
    _assignors: AssignorRequests | None = None

    def send(self, before: MonitorView, now: MonitorView, listing: GroupListing, sample: ClusterSample) -> bool:
        """Send the facts that group states do not contain yet. Return True if no fact of the sample was missing.

        The view `before` must be older than the listing.
        """
        pending = pending_by_group(now, sample)
        vanished = self._reconciler.vanished_groups(before, now, listing, sample) if self._reconciler else {}
        now_seconds = time.monotonic()
        assignors = self._assignors.reported(now, listing, now_seconds) if self._assignors else {}
        facts = _merge_facts(_merge_facts(pending, assignors), vanished)
        self._feedback_writer.send(facts, now_seconds, now.health.batch_seconds or 0, now.health.last_batch_ms)
        return not pending

    def send_vanished(self, now: MonitorView, sample: ClusterSample) -> None:
        """Inform the query about the commits that coordinators have deleted."""
        if self._reconciler:
            self._feedback_writer.send_vanished(self._reconciler.vanished_commits(now, sample, time.monotonic()))


def _merge_facts(one: PendingFacts, other: PendingFacts) -> PendingFacts:
    return {group_id: (*one.get(group_id, ()), *other.get(group_id, ())) for group_id in {**one, **other}}
