"""Send facts to the group states: write small files, which the second source of the query reads."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence

from streaming.combine.combiner import GROUP_KIND, PARTITION_KIND, StateRow
from streaming.combine.partition_state import CommitsVanished, encode_partition_event
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions
from streaming.events import ExternalFact, TopicsSampled, encode_event
from streaming.feedback.external_facts import pending_facts
from streaming.spark.checkpoint_files import FEEDBACK_FOLDER
from streaming.spark.files import Files
from streaming.spark.source import state_rows_file
from streaming.state.monitor_view import MonitorView

SEND_AGAIN_SECONDS = 30.0
"""Facts that have had no effect after this time are sent again, but only if a batch has ended since they were sent.

A batch usually takes about one second. Because of the second condition, a long outage of the query does not create many
files with the same facts.
"""

SEND_AGAIN_BATCHES = 3
"""Minimum time until facts are sent again, as a multiple of the duration of the last batch.

A batch of ten thousand groups can take minutes. With the same facts again, the next batch would also take minutes.
"""

PendingFacts = Mapping[str, tuple[ExternalFact, ...]]


def pending_by_group(view: MonitorView, sample: ClusterSample) -> PendingFacts:
    """Return the facts that the group states do not contain yet, by group id."""
    pending = {group_id: _pending_facts(record, sample, view.decided_skips) for group_id, record in view.groups.items()}
    return {group_id: facts for group_id, facts in pending.items() if facts}


def _pending_facts(record: GroupState, sample: ClusterSample, decisions: SkipDecisions) -> tuple[ExternalFact, ...]:
    is_complete = record.evaluation is None or record.evaluation.is_complete
    return pending_facts(record.snapshot, sample, decisions, record.pending, is_verdict_complete=is_complete)


class FeedbackWriter:
    """Writes pending facts to files. If a fact is not in the group states after some time, it is written again."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sent: dict[str, tuple[frozenset[Hashable], float, int | None]] = {}

    def send(
        self, pending: PendingFacts, now_seconds: float, batch_seconds: float = 0, last_batch_ms: int | None = None
    ) -> None:
        """Send facts that were not sent recently. `last_batch_ms` is the end time of the last batch."""
        send_again_seconds = max(SEND_AGAIN_SECONDS, SEND_AGAIN_BATCHES * batch_seconds)
        fresh = {
            group_id: events
            for group_id, events in pending.items()
            if not self._is_under_way(group_id, events, now_seconds - send_again_seconds, last_batch_ms)
        }
        self._sent = {group_id: sent for group_id, sent in self._sent.items() if group_id in pending}
        if not fresh:
            return
        facts = ((group_id, event) for group_id, events in sorted(fresh.items()) for event in events)
        self._write((GROUP_KIND, group_id, encode_event(event)) for group_id, event in facts)
        self._sent.update(
            {group_id: (_fact_content(events), now_seconds, last_batch_ms) for group_id, events in fresh.items()}
        )

    def send_vanished(self, vanished: Mapping[int, CommitsVanished]) -> None:
        """Inform the query about deleted commits, by `__consumer_offsets` partition.

        If the written file is lost, the reconciler finds the same commits again later.
        """
        if vanished:
            facts = sorted(vanished.items())
            self._write((PARTITION_KIND, str(at), encode_partition_event(event)) for at, event in facts)

    def _write(self, rows: Iterable[StateRow]) -> None:
        self._files.write(f"{FEEDBACK_FOLDER}/{uuid.uuid4().hex}.json", state_rows_file(rows))

    def _is_under_way(
        self, group_id: str, events: Sequence[ExternalFact], lost_if_sent_by_seconds: float, last_batch_ms: int | None
    ) -> bool:
        content, sent_seconds, batch_before_ms = self._sent.get(group_id, (None, 0.0, None))
        is_unread = sent_seconds > lost_if_sent_by_seconds or last_batch_ms == batch_before_ms
        return content == _fact_content(events) and is_unread


def _fact_content(events: Sequence[ExternalFact]) -> frozenset[Hashable]:
    return frozenset(_topics_content(event) if isinstance(event, TopicsSampled) else event for event in events)


def _topics_content(sampled: TopicsSampled) -> Hashable:
    topics = sampled.topics.items()
    content = sorted((topic, known.partitions or 0, known.racks, known.topic_id or "") for topic, known in topics)
    return sampled.is_time_corrected, *content
