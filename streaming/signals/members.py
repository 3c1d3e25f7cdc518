"""Members: these metrics show the actual owners and the expected owners of partitions.

These metrics exist only at the granularity `member`, because a member gets a new member id at every start.
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
    unknown="No record shows which partitions the member holds. The series is also absent if the group does not"
    " distribute partitions among its members.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Number of partitions of the topic that the member should hold according to the group's own strategy.",
    unknown="The verdict in `rebalance_monitor_assignment_verdict` is neither match nor drift. The series is also"
    " absent if a member with misplaced partitions rejoined with a different member id.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Sum of the lag of all partitions that the member holds. The unit is records.",
    unknown="The lag of at least one partition of the member is unknown, or the group never committed an offset of"
    " this partition.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
