"""Members: the actual and expected owners of partitions. These metrics are shown only at the granularity `member`.

A member gets a new member id at every start.
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
    help="Partitions of the topic that the member holds. 0 if the member subscribes to the topic and holds none of its"
    " partitions.",
    unknown="No record shows what the member holds, or the members do not divide partitions.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Partitions of the topic that the member should hold by the group's own strategy.",
    unknown="The verdict is neither match nor drift, see `rebalance_monitor_assignment_verdict`. Or a member with"
    " misplaced partitions rejoined with a different member id.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Records that the group has not committed yet, in the partitions that the member holds.",
    unknown="The lag of one of its partitions is unknown, or the group never committed an offset of one of them.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
