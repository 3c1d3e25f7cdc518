"""Define cases in which alerts on coordinators and transactions fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import BOTH, CRITICAL, WARNING, AlertCase, group, of_cluster, of_group

OF_COORDINATOR = {"cluster": "prod", "coordinator": "2"}
OF_PARTITION = {"cluster": "prod", "partition": "7"}


def groups(troubled: int, healthy: int, ends: str = "300", members: int = 3, metric: str = "silent") -> dict[str, str]:
    """Return the series of groups of broker 2: `troubled` are silent or far behind, `healthy` are not."""
    series = {}
    for number in range(troubled + healthy):
        name = f"group-{number}"
        series |= group(group=name, coordinator="2") | of_group("group_members", f"{members}x300", group=name)
        if number < troubled and metric == "silent":
            series |= of_group("group_condition", f"1x{ends} stale", condition="silent_group", group=name)
        elif number < troubled:
            series |= of_group("group_lag_seconds", f"7200x{ends} stale", group=name)
    return series


def blocked(records: str, last_stable_offset: str) -> dict[str, str]:
    """Return the series of the blocked records of a partition and of its last stable offset."""
    return of_cluster("offsets_topic_blocked", records, partition="7") | of_cluster(
        "offsets_topic_last_stable_offset", last_stable_offset, partition="7"
    )


TROUBLE = (
    AlertCase(
        "KafkaCoordinatorTrouble",
        "six of eight groups of a broker are silent",
        "10m",
        (CRITICAL,),
        groups(6, 2),
        labels=OF_COORDINATOR,
        says=(
            "prod: 6 groups of coordinator 2 are in trouble",
            (
                "6 groups are silent, stuck in a rebalance or far behind. Broker 2 is the coordinator of all these "
                "groups. At least half of the groups with this coordinator have such a problem. Groups without members "
                "do not count. Alertmanager suppresses most alerts about the groups. Likely causes: the broker is "
                "overloaded or cannot write __consumer_offsets, or clients cannot reach the broker. What to do: first "
                "check the log, the disks and the network of this broker. Also check the replicas of "
                "__consumer_offsets."
            ),
        ),
    ),
    AlertCase("KafkaCoordinatorTrouble", "six groups are far behind", "10m", (CRITICAL,), groups(6, 0, metric="lag")),
    AlertCase("KafkaCoordinatorTrouble", "four groups are too few", "10m", (), groups(4, 0)),
    AlertCase("KafkaCoordinatorTrouble", "six of twenty groups have problems of their own", "10m", (), groups(6, 14)),
    AlertCase(
        "KafkaCoordinatorTrouble", "retired groups do not count", "10m", (), groups(6, 0, members=0, metric="lag")
    ),
    AlertCase("KafkaCoordinatorTrouble", "the broker has recovered", "40m", (), groups(6, 2, ends="20")),
    AlertCase(
        "KafkaCoordinatorTrouble",
        "two monitors count each group once",
        "10m",
        (),
        groups(4, 0)
        | of_group("group_condition", "1x300", condition="silent_group", group="group-0", instance="b:9560"),
    ),
)


def leaderless(partitions: str) -> dict[str, str]:
    """Return the series of the partitions without a leader, of a monitor that is not ready for that reason."""
    return of_cluster("offsets_topic_leaderless_partitions", partitions) | of_cluster("ready", "1 0x300")


MISSING = (
    AlertCase(
        "KafkaCoordinatorMissing",
        "the only replica of five partitions is down",
        "10m",
        (CRITICAL,),
        leaderless("0 5x300"),
        labels={"cluster": "prod"},
        says=(
            "prod: partitions of __consumer_offsets have no leader",
            (
                "5 partitions of __consumer_offsets have no leader. Groups that store their offsets in these "
                "partitions have no coordinator, so they cannot commit or rebalance. Until all partitions have a "
                "leader, alerts about groups of this cluster cannot fire. Likely causes: the brokers with the replicas "
                "are down. What to do: start these brokers. The page /incidents names the groups and their last "
                "coordinator."
            ),
        ),
    ),
    AlertCase("KafkaCoordinatorMissing", "a broker restarts within a minute", "20m", (), leaderless("0 5x1 0x300")),
    AlertCase("KafkaCoordinatorMissing", "the broker runs again", "30m", (), leaderless("0 5x10 0x300")),
    AlertCase("KafkaCoordinatorMissing", "the monitor does not reach any broker", "30m", (), leaderless("0 0x2 stale")),
)

TRANSACTIONS = (
    AlertCase(
        "KafkaOffsetsBlockedByTransaction",
        "a transaction that does not end",
        "25m",
        BOTH,
        blocked("900x300", "100x300") | group(state="Unknown"),
        labels=OF_PARTITION,
        says=(
            "prod: an open transaction blocks partition 7 of __consumer_offsets",
            (
                "One transaction stays open and blocks 900 records. By default, Kafka ends each transaction after at "
                "most 15 minutes (transaction.max.timeout.ms). If a transaction stays open for longer, it probably "
                "hangs. Groups in state Unknown: 1. If the transaction contains offsets of a group, new consumers of "
                "the group cannot fetch these offsets. Likely causes: a hanging transaction, or a producer that "
                "crashed or does not end its transaction. What to do: search for a hanging transaction with "
                "kafka-transactions.sh find-hanging, and abort it. By default, the command lists only transactions "
                "without a new record for 15 minutes. If the command lists no transaction, see the runbook."
            ),
        ),
    ),
    AlertCase("KafkaOffsetsBlockedByTransaction", "eight minutes", "8m", (WARNING,), blocked("9x300", "100x300")),
    AlertCase("KafkaOffsetsBlockedByTransaction", "three minutes", "3m", (), blocked("9x300", "100x300")),
    AlertCase(
        "KafkaOffsetsBlockedByTransaction",
        "short transactions one after the other",
        "60m",
        (),
        blocked("5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1", "100+5x300"),
    ),
    AlertCase(
        "KafkaOffsetsBlockedByTransaction",
        "exactly-once traffic in which a different transaction is open at each moment",
        "60m",
        (),
        blocked("5x300", "100+5x300"),
    ),
    AlertCase(
        "KafkaOffsetsBlockedByTransaction",
        "transactions of 15 minutes one after the other, the allowed maximum",
        "42m",
        (WARNING,),
        blocked("5x300", "100x14 200x14 300x14 400x300"),
    ),
    AlertCase(
        "KafkaOffsetsBlockedByTransaction",
        "the transaction was aborted",
        "60m",
        (),
        blocked("900x30 0x300", "100x30 1000x300"),
    ),
)

COORDINATORS = (*TROUBLE, *MISSING, *TRANSACTIONS)
