"""Members: these metrics show the actual and the expected number of partitions of each member.

By default, the monitor does not export metrics of members, because each start of a member creates new series. To export
metrics of members, set `metrics.granularity` to `member`.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import MEMBER, OF_A_GROUP, Signal

_OF_A_MEMBER = (*OF_A_GROUP, "member", "group_instance_id", "client_id", "client_host")

MEMBER_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Number of the topic's partitions that the member owns. The value is 0 if the member subscribes to the topic"
    " but owns no partition of the topic.",
    unknown="No record shows the partitions of the member. The series is also absent if the group does not assign topic"
    " partitions to members.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Number of the topic's partitions that the group's strategy assigns to the member.",
    unknown="The verdict in `rebalance_monitor_assignment_verdict` is neither `match` nor `drift`. The series is also"
    " absent if the members of the group changed after the verdict.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Sum of the lags of the member's partitions, in records.",
    unknown="The lag of at least one partition of the member is unknown, or a partition of the member has no committed"
    " offset.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
