"""Find the facts that the driver must send to a group's state: sampled topics, and decisions about skipped generations.

After every sample, the driver compares its facts with the group's state. The driver sends each fact that is missing in
the group's state. So a fact that was sent but lost is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streaming.evaluation.assignment.sampled_topics import is_later, pending_topics
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions, settlements
from streaming.events import ExternalFact, GroupForgotten, TopicMetadata, TopicsSampled
from streaming.group.history import awaits_names
from streaming.group.snapshot import GroupSnapshot

FORGET_AFTER_MS = 7 * 24 * 3_600_000
"""Time after which the state of a deleted group is removed: one week in milliseconds.

If a group is created again within this time, the new counts are added to its old totals.
"""


def pending_facts(
    snapshot: GroupSnapshot,
    sample: ClusterSample,
    decisions: SkipDecisions,
    pending: Iterable[GroupSnapshot] = (),
    *,
    is_verdict_complete: bool = True,
) -> tuple[ExternalFact, ...]:
    """Return all facts that the group needs and that its state does not contain yet.

    `pending` contains earlier snapshots of the group whose table rows are not written yet. The result has the topics
    and fields that any of the snapshots needs. For example, if a classic group has the id of an earlier KIP-848 group,
    rows of the earlier group can still wait for topic ids. `is_verdict_complete` is False if the verdict on `snapshot`
    still waits for a sample. If no partition count is missing, the verdict waits for racks that were sampled after the
    record.
    """
    now_ms, ended_at_ms = sample.deletion_time_ms, snapshot.position.timestamp_ms if snapshot.position else 0
    if snapshot.is_over and now_ms is not None and now_ms - ended_at_ms > FORGET_AFTER_MS:
        return (GroupForgotten(),)
    topics: dict[str, TopicMetadata] = {}
    in_future: set[str] = set()
    snapshots = (*pending, snapshot)
    needed = _needed_metadata(snapshots, sample)
    for waiting in snapshots:
        awaits_racks = waiting is snapshot and not is_verdict_complete
        topics |= _pending_topics(waiting, sample, needed, awaits_racks=awaits_racks)
        in_future.update(topic for topic in topics if _is_in_future(waiting, topic, topics[topic], sample))
    sampled = TopicsSampled({topic: topics[topic] for topic in topics if topic not in in_future})
    corrected = TopicsSampled({topic: topics[topic] for topic in sorted(in_future)}, is_time_corrected=True)
    return (*(event for event in (sampled, corrected) if event.topics), *settlements(snapshot, decisions))


def _pending_topics(
    snapshot: GroupSnapshot, sample: ClusterSample, needed: Mapping[str, TopicMetadata], *, awaits_racks: bool
) -> dict[str, TopicMetadata]:
    wanted = set(pending_topics(snapshot)) if not awaits_names(snapshot) else set(snapshot.subscribed_topics())
    if awaits_racks and not wanted:
        wanted = {topic for topic, known in snapshot.topics.items() if not is_later(snapshot, known)}
    pending = {}
    for topic in snapshot.topics_to_sample():
        known, sampled = snapshot.topics.get(topic), needed.get(topic)
        if sampled is None:
            continue
        is_newer = known is None or known.sampled_at_ms < sampled.sampled_at_ms
        is_needed = is_newer and (topic in wanted or known is None or _content(known) != _content(sampled))
        if is_needed or _is_in_future(snapshot, topic, sampled, sample):
            pending[topic] = sampled
    return pending


def _is_in_future(snapshot: GroupSnapshot, topic: str, sampled: TopicMetadata, sample: ClusterSample) -> bool:
    """Return True if the topic metadata in the group's state is newer than the last sample.

    The monitor's clock was ahead when this metadata was sampled. Without a correction, the state would ignore every
    sample before the stored time. While the cluster time is unknown, the time of the last sample may be wrong too, so
    the result is False. Exception: in the polling mode, all times come from the monitor's clock, so the function can
    compare them.
    """
    known = snapshot.topics.get(topic)
    is_known = sample.is_clock_known or snapshot.is_polled
    return is_known and known is not None and known.sampled_at_ms > sampled.sampled_at_ms


def _content(topic: TopicMetadata) -> tuple[object, ...]:
    return topic.partitions, topic.racks, topic.topic_id


def _needed_metadata(snapshots: Sequence[GroupSnapshot], sample: ClusterSample) -> dict[str, TopicMetadata]:
    """Keep the state small: omit racks if no member has a rack, and topic ids if no record has one.

    A group without members keeps its racks. Otherwise, each stop and start of its members would send two facts.
    """
    wants_racks = any(_needs_racks(snapshot) for snapshot in snapshots)
    wants_id = any(snapshot.modern is not None for snapshot in snapshots)
    return {
        topic: TopicMetadata(
            sampled.partitions,
            sampled.sampled_at_ms,
            sampled.racks if wants_racks else (),
            sampled.topic_id if wants_id else None,
        )
        for topic in {topic for snapshot in snapshots for topic in snapshot.topics_to_sample()}
        if (sampled := sample.topics.get(topic)) is not None
    }


def _needs_racks(snapshot: GroupSnapshot) -> bool:
    if not snapshot.member_count():
        return any(known.racks for known in snapshot.topics.values())
    if snapshot.modern is not None:
        return any(member.rack_id for member in snapshot.modern.members.values())
    members = snapshot.classic.members if snapshot.classic else ()
    return any(member.subscription is not None and bool(member.subscription.rack_id) for member in members)
