"""Members: the actual and expected owners of partitions. These metrics exist only at the granularity `member`.

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
    unknown="No record shows which partitions the member holds, or the members do not share partitions.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Partitions of the topic that the member should hold according to the group's own strategy.",
    unknown="The verdict in `rebalance_monitor_assignment_verdict` is neither match nor drift, or a member with"
    " misplaced partitions rejoined with a different member id.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Sum of the lag of all partitions that the member holds, in records.",
    unknown="For at least one partition of the member, the lag is unknown, or the group never committed an offset.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
