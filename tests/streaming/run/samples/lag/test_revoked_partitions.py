"""The cause of lag in partitions that a KIP-848 member must still revoke. Only the brokers are simulated."""

from __future__ import annotations

from pathlib import Path

from streaming.events import CONSUMER, CurrentWritten, TopicsNamed
from streaming.protocol.modern import MemberAssignment
from tests.streaming.groups import at, current, epoch, joined, target, target_epoch
from tests.streaming.run.samples.orders import Orders
from tests.streaming.run.samples.test_conditions import Monitor


def write_endless_revocation(monitor: Monitor) -> None:
    """Replace the group by a KIP-848 group: member a must still revoke orders-1, for which member b waits."""
    revoking = MemberAssignment(3, 2, "UnrevokedPartitions", (("id", (0,)),), (("id", (1,)),))
    monitor.records.clear()
    monitor.write(
        *(TopicsNamed(at(0), {"id": "orders"}), joined(1, "a"), joined(2, "b"), epoch(3, 4)),
        *(target(4, "a", (("id", (0,)),)), target(5, "b", (("id", (1,)),)), target_epoch(6, 4)),
        *(CurrentWritten(at(7), CONSUMER, "a", revoking), current(8, "b", (), 4, "UnreleasedPartitions")),
    )


def test_a_partition_that_a_hanging_member_must_still_revoke_has_an_owner(tmp_path: Path) -> None:
    """KIP-848: member a hangs while member b waits for orders-1. The cause was `no_owner`, but a owns orders-1."""
    orders = Orders(Monitor(tmp_path))
    write_endless_revocation(orders.monitor)
    orders.run(400, (0, 100), (0, 100))
    assert orders.cause() is None
    orders.run(120, (0, 100), (0, 0))
    cause = orders.cause()
    assert cause is not None
    assert (cause.kind, cause.reason) == ("stopped", "no_commits")
