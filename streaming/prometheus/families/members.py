"""Creates the metrics of members: the actual and expected number of partitions per topic, and the lag.

Partition counts come from the stored state of the group. The lag comes from the last sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streaming.config.names import NameFilter
from streaming.evaluation.assignment.member_shares import TopicShare, lag_of
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember
from streaming.prometheus.group_texts import GroupFamily, Samples
from streaming.prometheus.lines import Sample
from streaming.signals import members as signals


def member_families(topics: NameFilter) -> tuple[GroupFamily, ...]:
    """Return the metrics of the actual and expected number of partitions, for the selected topics."""
    return (
        GroupFamily(signals.MEMBER_PARTITIONS, _shares(topics, lambda share: share.partitions)),
        GroupFamily(signals.MEMBER_EXPECTED_PARTITIONS, _shares(topics, lambda share: share.expected)),
    )


def _shares(topics: NameFilter, partitions: Callable[[TopicShare], int | None]) -> Samples:
    def samples(report: GroupReport) -> Iterator[Sample]:
        shares = report.members.topic_shares
        shown = set(topics.among({share.topic for share in shares}))
        for share in shares:
            if share.topic in shown and (count := partitions(share)) is not None:
                yield Sample((report.group_id, *_labels(share.member), share.topic), count)

    return samples


def member_lags(reports: Iterable[GroupReport], lag: LagEvaluation) -> list[Sample]:
    """Return the lag of each member of these groups at the last sample."""
    return [
        Sample((report.group_id, *_labels(member)), records)
        for report in reports
        for member in report.members.each
        if (records := lag_of(member.held, lag.by_partition.get(report.group_id, {}))) is not None
    ]


def _labels(member: GroupMember) -> tuple[str, str, str, str]:
    return member.member_id, member.group_instance_id or "", member.client_id, member.client_host
