"""Members: these metrics show how many partitions each member holds and should hold.

By default, the metrics of members are not exported, because a member gets a new member id at every start. To export
these metrics, set `metrics.granularity` to `member`.
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
    help="Number of partitions of the topic that the member holds. The value is 0 if the member subscribes to the"
    " topic but holds no partition of the topic.",
    unknown="No record shows the partitions of the member. The series is also absent if the group does not distribute"
    " partitions among its members.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Number of partitions of the topic that the group's own strategy assigns to the member.",
    unknown="The verdict in `rebalance_monitor_assignment_verdict` is not `match` and not `drift`. The series is also"
    " absent if the verdict contains a member id that is no longer in the group. For example, a static member gets a"
    " new member id when it rejoins.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Number of records in the member's partitions that the group has not committed yet.",
    unknown="The lag of at least one partition of the member is unknown, or at least one of its partitions has no"
    " committed offset.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
