"""Creates the group metrics whose text is cached: members, state, counters and fairness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streaming.evaluation.report import GroupReport
from streaming.prometheus.families.imbalance import IMBALANCE_FAMILIES
from streaming.prometheus.families.owners import OWNER_FAMILIES
from streaming.prometheus.families.rebalances import REBALANCE_FAMILIES
from streaming.prometheus.group_texts import GroupFamily, single_sample
from streaming.prometheus.lines import Sample
from streaming.signals import groups, kafka_exporter


def _description(report: GroupReport) -> Iterable[Sample]:
    group, limits = report.membership, report.limits
    strategy = (group.protocol_type or "", group.protocol or "", group.protocol_source or "")
    coordinator = "" if group.coordinator is None else str(group.coordinator)
    alerts = (limits.team, limits.severity, "true" if limits.ignore_alerts else "false")
    yield Sample((report.group_id, group.group_type, *strategy, group.state, coordinator, *alerts), 1)


def _limits(report: GroupReport) -> Iterable[Sample]:
    for name in groups.GROUP_LIMIT.label_values["limit"]:
        yield Sample((report.group_id, name), getattr(report.limits, name))


GROUP_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(groups.GROUP_MEMBERS, single_sample(lambda report: report.membership.members)),
    GroupFamily(groups.GROUP_GENERATION, single_sample(lambda report: report.membership.generation_id)),
    GroupFamily(groups.GROUP_INFO, _description),
    GroupFamily(groups.GROUP_LIMIT, _limits),
    *REBALANCE_FAMILIES,
    *IMBALANCE_FAMILIES,
    *OWNER_FAMILIES,
    GroupFamily(kafka_exporter.CONSUMERGROUP_MEMBERS, single_sample(lambda report: report.membership.members)),
)
"""All group metrics whose text is cached (`group_texts`), except metrics of members."""
