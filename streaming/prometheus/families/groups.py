"""Creates the group metrics whose text is cached: members, state, counters and fairness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streaming.evaluation.report import GroupReport
from streaming.prometheus.families.gaps import GAP_FAMILIES
from streaming.prometheus.families.imbalance import IMBALANCE_FAMILIES
from streaming.prometheus.families.owners import OWNER_FAMILIES
from streaming.prometheus.families.rebalances import REBALANCE_FAMILIES
from streaming.prometheus.group_texts import GroupFamily, single_sample
from streaming.prometheus.lines import Sample
from streaming.signals import groups, kafka_exporter


def _state(report: GroupReport) -> Iterable[Sample]:
    group = report.membership
    strategy = (group.protocol_type or "", group.protocol or "", group.protocol_source or "")
    yield Sample((report.group_id, group.group_type, *strategy, group.state), 1)


GROUP_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (groups.GROUP_MEMBERS, single_sample(lambda report: report.membership.members)),
    (groups.GROUP_GENERATION, single_sample(lambda report: report.membership.generation_id)),
    (groups.GROUP_STATE, _state),
    *REBALANCE_FAMILIES,
    *GAP_FAMILIES,
    *IMBALANCE_FAMILIES,
    *OWNER_FAMILIES,
    (kafka_exporter.CONSUMERGROUP_MEMBERS, single_sample(lambda report: report.membership.members)),
)
"""All metrics with the granularity `group` and with cached text (`group_texts`)."""
