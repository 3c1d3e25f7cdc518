"""Facts on their way back to groups: small files where the query's second source finds them."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence

from streaming.combine.combiner import GROUP_KIND, PARTITION_KIND, StateRow
from streaming.combine.partition_state import CommitsVanished, encode_partition_event
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import ExternalFact, TopicsSampled, encode_event
from streaming.feedback.external_facts import pending_facts
from streaming.spark.checkpoint_files import FEEDBACK_FOLDER
from streaming.spark.files import Files
from streaming.spark.source import state_rows_file
from streaming.state.monitor_view import MonitorView

SEND_AGAIN_SECONDS = 30.0
"""Facts without effect for so long were lost on the way (a batch takes a second): they are sent once more."""

SEND_AGAIN_BATCHES = 3
"""So many times a batch's own length they are given at least. A batch that takes ten thousand groups at once can take
minutes where the processor is shared; what it is about to take in, sent again, would be another such batch after it."""

PendingFacts = Mapping[str, tuple[ExternalFact, ...]]


def pending_by_group(view: MonitorView, sample: ClusterSample) -> PendingFacts:
    """What each group could know by now and does not; groups that want for nothing are left out."""
    pending = {}
    for group_id, record in view.groups.items():
        if events := pending_facts(record.snapshot, sample, view.decided_skips, record.pending):
            pending[group_id] = events
    return pending


class FeedbackWriter:
    """Writes awaited facts, each once; the same again only after a while without effect."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sent: dict[str, tuple[frozenset[Hashable], float]] = {}

    def send(self, pending: PendingFacts, now_seconds: float, batch_seconds: float = 0) -> None:
        """Send what is not under way yet; `batch_seconds` is how long the last batch took."""
        patience_seconds = max(SEND_AGAIN_SECONDS, SEND_AGAIN_BATCHES * batch_seconds)
        fresh = {
            group_id: events
            for group_id, events in pending.items()
            if not self._is_under_way(group_id, events, now_seconds - patience_seconds)
        }
        self._sent = {group_id: sent for group_id, sent in self._sent.items() if group_id in pending}
        if not fresh:
            return
        facts = ((group_id, event) for group_id, events in sorted(fresh.items()) for event in events)
        self._write((GROUP_KIND, group_id, encode_event(event)) for group_id, event in facts)
        self._sent.update({group_id: (_gist(events), now_seconds) for group_id, events in fresh.items()})

    def send_vanished(self, vanished: Mapping[int, CommitsVanished]) -> None:
        """Send what is gone of each Kafka partition's commits. Whoever found it finds it again if it gets lost."""
        if vanished:
            facts = sorted(vanished.items())
            self._write((PARTITION_KIND, str(at), encode_partition_event(event)) for at, event in facts)

    def _write(self, rows: Iterable[StateRow]) -> None:
        self._files.write(f"{FEEDBACK_FOLDER}/{uuid.uuid4().hex}.json", state_rows_file(rows))

    def _is_under_way(self, group_id: str, events: Sequence[ExternalFact], lost_if_sent_by_seconds: float) -> bool:
        gist, sent_seconds = self._sent.get(group_id, (frozenset(), 0.0))
        return gist == _gist(events) and sent_seconds > lost_if_sent_by_seconds


def _gist(events: Sequence[ExternalFact]) -> frozenset[Hashable]:
    """What the facts say, without when it was learned: a newer sample of the same count is the same fact."""
    return frozenset(_topics_gist(event) if isinstance(event, TopicsSampled) else event for event in events)


def _topics_gist(sampled: TopicsSampled) -> Hashable:
    topics = sampled.topics.items()
    return tuple(sorted((topic, known.partitions or 0, known.racks, known.topic_id or "") for topic, known in topics))
