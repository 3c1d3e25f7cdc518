"""Find subscribed topics that do not exist.

If a member subscribes to a misspelled topic, the member reads nothing, and Kafka reports no error. The rule numbers
continue after those of `commit_gaps.py`.

21. `subscribed_topic_missing`: members subscribe by name to a topic that has been missing for longer than
    `stuck_after_seconds`. The start time is the time of the first sample that does not contain the topic. A restart of
    the monitor does not change the start time of a missing topic. Topics that match a member's regular expression
    (KIP-848) do not count. A classic client resolves its regular expression itself, so its subscription contains only
    names. When the client refreshes its metadata, it removes deleted topics from its subscription. So these topics are
    no longer missing.
22. A topic is missing (`ClusterSample.missing_topics`) if two requirements are met. First: the brokers do not know the
    topic. Second: the response of the brokers shows that the monitor has the permission DESCRIBE on the topic name.
    Brokers before Kafka 1.0 return UNKNOWN_TOPIC_OR_PARTITION even without the permission DESCRIBE, so this error alone
    proves nothing. Brokers before Kafka 2.3 do not report permissions, so no topic of such brokers counts as missing.
23. The condition is unknown in two cases. First case: the topic was missing before, and the last sample does not show
    whether the topic exists. Second case: the last record of a classic group cannot be decoded, so the subscriptions
    are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.phrases import counted, in_words, named
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.group.snapshot import GroupSnapshot

SUBSCRIBED_TOPIC_MISSING = "subscribed_topic_missing"


@dataclass(frozen=True, slots=True)
class MissingTopics:
    """The missing topics of one group, each with its start time and the number of its subscribers.

    `is_known` is False if it is unknown whether other topics are also missing (rule 23).
    """

    since_ms: Mapping[str, int]
    members: Mapping[str, int]
    is_known: bool = True

    def condition(self, now_ms: int, limits: Limits) -> Mapping[str, str | None]:
        """Return the name and the text of the condition, or an empty mapping if it is not active (rule 21).

        The text is None if it is unknown whether the condition is active.

        >>> missing = MissingTopics({"ordres": 0}, {"ordres": 2})
        >>> missing.condition(600_000, Limits())
        {'subscribed_topic_missing': 'topic ordres has not existed for 10 minutes; 2 members subscribe to it'}
        >>> missing.condition(300_000, Limits())
        {}
        """
        lasting = [
            topic for topic, since_ms in self.since_ms.items() if now_ms - since_ms > 1000 * limits.stuck_after_seconds
        ]
        if not lasting:
            return {} if self.is_known else {SUBSCRIBED_TOPIC_MISSING: None}
        lasts = in_words(now_ms - min(self.since_ms[topic] for topic in lasting))
        members = counted(max(self.members[topic] for topic in lasting), "member")
        if len(lasting) == 1:
            verb = "subscribes" if members == "1 member" else "subscribe"
            return {SUBSCRIBED_TOPIC_MISSING: f"topic {lasting[0]} has not existed for {lasts}; {members} {verb} to it"}
        text = f"{len(lasting)} subscribed topics do not exist, one of them for {lasts}: {named(lasting)}"
        return {SUBSCRIBED_TOPIC_MISSING: text}


def missing_topics_now(groups: Mapping[str, GroupState], sample: ClusterSample) -> Mapping[str, MissingTopics]:
    """Return the missing topics of each group. A group is absent if the brokers know all its topics."""
    found = ((group_id, _missing_topics(record.snapshot, sample)) for group_id, record in groups.items())
    return {group_id: missing for group_id, missing in found if missing is not None}


def _missing_topics(snapshot: GroupSnapshot, sample: ClusterSample) -> MissingTopics | None:
    since_ms = {topic: known.known_since_ms for topic, known in snapshot.topics.items() if known.partitions is None}
    if not since_ms:
        return None
    subscriptions = [topic for topics in _subscriptions(snapshot) for topic in topics if topic in since_ms]
    missing = sample.missing_topics.intersection(subscriptions)
    sampled = (sample.topics.get(topic) for topic in subscriptions if topic not in missing)
    all_known = all(one is not None and one.partitions is not None for one in sampled)
    return MissingTopics(
        since_ms={topic: since_ms[topic] for topic in sorted(missing)},
        members={topic: subscriptions.count(topic) for topic in missing},
        is_known=all_known and (snapshot.classic is not None or snapshot.modern is not None),
    )


def _subscriptions(snapshot: GroupSnapshot) -> Iterator[frozenset[str]]:
    """Yield the topic names in the subscription of each member. Members with an unknown subscription are omitted."""
    if snapshot.modern is not None:
        yield from (frozenset(member.subscribed_topics) for member in snapshot.modern.members.values())
    elif snapshot.classic is not None:
        subscriptions = (member.subscription for member in snapshot.classic.members)
        yield from (frozenset(subscription.topics) for subscription in subscriptions if subscription is not None)
