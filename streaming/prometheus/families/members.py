"""What is told of members: what each has of each topic and should have, from records; its lag, from the last sample.

Nothing is told of the members of a group that an open transaction holds back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from assignors import TopicPartition
from streaming.config.names import NameFilter
from streaming.evaluation.assignment.member_shares import TopicShare, lag_of, topic_shares
from streaming.evaluation.lag.lag_judgement import LagJudgement
from streaming.evaluation.severity.summary import own_drift
from streaming.group.members import GroupMember, members
from streaming.prometheus.group_facts import GroupFacts, GroupFamily, Samples
from streaming.prometheus.lines import Sample
from streaming.signals import members as signals
from streaming.state.registry import Present


def member_families(topics: NameFilter) -> tuple[GroupFamily, ...]:
    """Both metrics of members' shares, for these topics."""
    return (
        (signals.MEMBER_PARTITIONS, _shares(topics, lambda share: share.partitions)),
        (signals.MEMBER_EXPECTED_PARTITIONS, _shares(topics, lambda share: share.expected)),
    )


def _shares(topics: NameFilter, partitions: Callable[[TopicShare], int | None]) -> Samples:
    def samples(facts: GroupFacts) -> Iterator[Sample]:
        snapshot = facts.record.snapshot
        if facts.is_held_back:
            return
        unnamed = snapshot.modern.unnamed_topic_ids() if snapshot.modern else frozenset()
        shares = list(topic_shares(members(snapshot), own_drift(facts.record), unnamed))
        shown = set(topics.among({share.topic for share in shares}))
        for share in shares:
            if share.topic in shown and (count := partitions(share)) is not None:
                yield Sample((facts.group_id, *_labels(share.member), share.topic), count)

    return samples


def member_lags(present: Present, groups: NameFilter) -> list[Sample]:
    """The lag of each member of these groups, as of the last sample."""
    if present.lag is None:
        return []
    lags, is_held_back = _by_group(present.lag), present.held_back_groups()
    alive = present.alive_groups()
    return [
        Sample((group_id, *_labels(member)), records)
        for group_id in groups.among(alive)
        if not is_held_back(group_id)
        for member in members(alive[group_id].snapshot)
        if (records := lag_of(member.assigned, lags.get(group_id, {}))) is not None
    ]


def _labels(member: GroupMember) -> tuple[str, str, str, str]:
    return member.member_id, member.group_instance_id or "", member.client_id, member.client_host


def _by_group(lag: LagJudgement) -> Mapping[str, Mapping[TopicPartition, int | None]]:
    found: dict[str, dict[TopicPartition, int | None]] = defaultdict(dict)
    columns = (lag.partitions[name].to_pylist() for name in ("group_id", "topic", "partition", "lag"))
    for group_id, topic, partition, records in zip(*columns, strict=True):
        found[group_id][topic, partition] = records
    return found
