"""Members: who owns what, and who should. Only at the granularity `member`: a member's id is another at every start."""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import MEMBER, OF_A_GROUP, Signal

_OF_A_MEMBER = (*OF_A_GROUP, "member", "group_instance_id", "client_id", "client_host")

MEMBER_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Partitions of the topic that the member has; 0 of a topic it subscribes to and has nothing of.",
    unknown="No record tells what the member has, or members divide something else than partitions.",
    example="sum by (cluster, group, member) (rebalance_monitor_member_partitions)",
)
MEMBER_EXPECTED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_member_expected_partitions",
    unit="partitions",
    labels=(*_OF_A_MEMBER, "topic"),
    granularity=MEMBER,
    help="Partitions of the topic that the member should have by the group's own strategy.",
    unknown="The verdict is neither match nor drift: `rebalance_monitor_assignment_verdict`. Or a member with misplaced"
    " partitions came back under another id.",
    example="rebalance_monitor_member_partitions != rebalance_monitor_member_expected_partitions",
)
MEMBER_LAG: Final = Signal(
    name="rebalance_monitor_member_lag",
    unit="records",
    labels=_OF_A_MEMBER,
    granularity=MEMBER,
    help="Records of all that the member has which the group has yet to commit.",
    unknown="The lag of one of its partitions is not known, or nothing was committed there.",
    example="topk by (cluster, group) (1, rebalance_monitor_member_lag)",
)
