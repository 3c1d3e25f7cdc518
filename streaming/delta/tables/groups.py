"""Defines the tables of the history of groups: generations, rebalances, conditions and commit gaps."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GENERATION,
    GROUP,
    NAMED_PARTITIONS,
    RECORD,
    SAMPLED,
    TOPIC_PARTITIONS,
    Table,
    boolean,
    column,
    int32,
    int64,
    text,
    texts,
    time,
)

_MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rack_id", pa.string()),
        ("subscription", pa.list_(pa.string())),
        ("subscribed_regex", pa.string()),
        ("member_epoch", pa.int32()),
        ("owned", TOPIC_PARTITIONS),
        ("assignment", TOPIC_PARTITIONS),
        ("target", TOPIC_PARTITIONS),
        ("pending_revocation", TOPIC_PARTITIONS),
    ]
)
_MEMBER_CHANGE = pa.struct(
    [
        ("member_id", pa.string()),
        ("previous_member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("changes", pa.list_(pa.string())),
        ("revoked", NAMED_PARTITIONS),
        ("assigned", NAMED_PARTITIONS),
    ]
)
_BY_CAUSE = pa.list_(pa.struct([("cause", pa.string()), ("rebalances", pa.int64())]))
_BY_NEED = pa.list_(pa.struct([("necessary", pa.string()), ("partitions", pa.int64())]))

PROTOCOL_SOURCE = (
    "source of the value in `protocol`. `records` means that the group's records contain the name of the strategy."
    " `broker` means that only the group coordinator reported the name. The value is `broker` if no member of a KIP-848"
    " group names an assignor, or if `source.kind` is `admin-api`. Null if `protocol` is null"
)

GROUP_GENERATIONS = Table(
    "group_generations",
    "the state of a group after one record that changed the group. In a classic group, such a record shows a new"
    " generation, the rejoin of a static member, or the transition to `Empty`. In a KIP-848 group, such a record shows"
    " a new epoch, a new assignment epoch, or the end of a reconciliation. The table also has a row for the tombstone"
    " of a group. If the brokers no longer list a group, but no record shows its end, the monitor writes a row with the"
    " state `Gone`. In this row, `offsets_topic_partition` and `offsets_topic_offset` are the position of the group's"
    " last record in `__consumer_offsets`",
    pa.schema(
        [
            *RECORD,
            GROUP,
            text("group_type", "`classic`, `consumer` (KIP-848), `share` or `streams`"),
            text(
                "state",
                "state of the group: `Stable`, `Empty`, `Assigning`, `Reconciling`, `Dead`, `Gone` or `Unknown`."
                " `Gone` means that the brokers no longer list the group, but no record shows its end. `Unknown` means"
                " that a record is missing or could not be decoded. Streams groups with members are also `Unknown`",
            ),
            GENERATION,
            int32(
                "assignment_epoch",
                "epoch for which the coordinator computed the target assignments. Null for classic groups",
            ),
            text("protocol_type", "protocol type of the members, for example `consumer` or `connect`"),
            text("protocol", "name of the strategy that the coordinator chose. Null if unknown"),
            text("protocol_source", PROTOCOL_SOURCE),
            text("leader", "member id of the group leader"),
            column(
                "members",
                pa.list_(_MEMBER),
                "members, sorted by member id. The field `owned` contains the partitions that a classic member claimed"
                " when it joined. The field `assignment` contains the partitions that the member may consume. The"
                " field `target` contains the partitions that the coordinator wants to assign to the member. The field"
                " `pending_revocation` contains the partitions that the member must revoke. A field is null if no"
                " record contains its value. Records of a streams group contain tasks instead of topics and partitions."
                " If the name of a topic is unknown, the field `topic_id` contains its id, and `topic` is null",
            ),
            texts(
                "not_known",
                "names of the values that are unknown in this row. Possible names: `group_epoch`, `member_metadata`,"
                " `current_assignment`, `target_assignment`, `resolved_regex`, `unreadable_record`, `topic_names`,"
                " `member_subscription` and `member_assignment`. `unreadable_record` means that the monitor could not"
                " decode a record of the group. `topic_names` means that the names of some topics are unknown, so the"
                " row contains the topic ids. `member_subscription` and `member_assignment` mean that the monitor could"
                " not decode the data of a classic member. If `source.kind` is `admin-api`, the column also contains"
                " the names of values that the coordinators did not return",
            ),
            int64("rebalances_total", "number of rebalances since the monitor first saw the group"),
            int64(
                "rebalances_failed_total",
                "number of failed rebalances since the monitor first saw the group. In a failed rebalance, members"
                " joined a new generation, but the generation never got an assignment. The monitor counts only"
                " failures that are visible in the records. Null if `source.kind` is `admin-api` and the group is a"
                " classic group",
            ),
            int64(
                "empty_transitions_total",
                "number of times that the last member left the group, since the monitor first saw the group",
            ),
            int32("incarnations", "number of times that a group with this id was created, including the first time"),
        ]
    ),
)

REBALANCES = Table(
    "rebalances",
    "one generation or epoch of a group, and the changes since the previous generation or epoch. For a KIP-848 group,"
    " the monitor writes the row when the coordinator has computed the target assignments",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            text(
                "kind",
                "type of the change. `static_rejoin` means that a static member rejoined with a new member id, without"
                " a rebalance. `became_empty` means that the last member left. `first_seen` means that the monitor has"
                " no earlier data about the group. `created` means that a group was created again after its deletion."
                " `upgraded` means that the group changed from the classic protocol to the consumer protocol (KIP-848)"
                " or to the streams protocol (KIP-1071). `downgraded` means that the group changed back to the classic"
                " protocol. `deleted` means that the record is the group's tombstone. The coordinator also"
                " writes a tombstone when it upgrades or downgrades a group. In this case, the next row of the group"
                " has the kind `upgraded` or `downgraded`. All other changes have the kind `rebalance`",
            ),
            text(
                "primary_cause",
                "most important cause: the first entry of `causes`. Null if unknown, or if `kind` is not `rebalance`",
            ),
            texts(
                "causes",
                "causes of the rebalance. The most important cause comes first. The values are `strategy_changed`,"
                " `member_gone`, `member_joined`, `subscription_changed`, `metadata_changed`, `cooperative_followup`"
                " and `unexplained`. `strategy_changed` means that the group changed its strategy, even if only the"
                " group coordinator reported the change. `member_gone` means that a member left, timed out or was"
                " fenced. `metadata_changed` means that a topic has more partitions than before. In a KIP-848 group,"
                " it can also mean that a topic was created again. `cooperative_followup` means that the rebalance is a"
                " later round of a cooperative rebalance. `unexplained` means that the records show none of the other"
                " causes. For example, the deletion of a topic causes a rebalance, but no record shows the deletion."
                " Null if unknown (see `not_known`)",
            ),
            int32("members", "number of members after the rebalance"),
            text("protocol", "name of the strategy after the rebalance"),
            text("protocol_source", PROTOCOL_SOURCE),
            text("previous_protocol", "name of the strategy before the rebalance"),
            column(
                "changes",
                pa.list_(_MEMBER_CHANGE),
                "members with a change. The field `changes` contains `joined`, `gone`, `rejoined` or `resubscribed`."
                " `rejoined` means that a static member has a new member id. `resubscribed` means that the member"
                " changed its subscription. The field `revoked` contains the partitions that the member lost. The"
                " field `assigned` contains the partitions that the member gained. Both fields are null if"
                " unknown. If the name of a topic is unknown, the field `topic` contains the topic id. In a KIP-848"
                " group, a topic that was created again is a new topic. So a member can lose and gain a partition with"
                " the same name",
            ),
            int32(
                "moved_partitions",
                "number of partitions that moved to a different owner. A cooperative rebalance can have several"
                " rounds, with one row for each round. The row of the last round contains the number of moves in all"
                " rounds. The rows of the other rounds contain null. Also null if unknown",
            ),
            int32(
                "fewest_moves",
                "minimum number of partition moves. With fewer moves, the new assignment would be invalid, or less"
                " balanced than the actual assignment. Null if unknown, for example if `unowned` is not empty",
            ),
            boolean("fewest_is_exact", "true if `fewest_moves` is exact. false if `fewest_moves` is a lower bound"),
            int32(
                "withheld_partitions",
                "number of withheld partitions in this round of a cooperative rebalance (KIP-429). A withheld"
                " partition was revoked from its owner and has no new owner yet. Usually, it gets a new owner in the"
                " next round. If the topic was deleted, no member gets the partition",
            ),
            column(
                "unowned",
                NAMED_PARTITIONS,
                "partitions without an owner after the rebalance, including withheld partitions. The column contains"
                " only partitions that had an owner earlier, or that a member claimed when it joined. The column can"
                " contain partitions of deleted topics, because no record shows that a topic was deleted. The column is"
                " empty if the group has no members, because then no topic is subscribed",
            ),
            int32(
                "unowned_before_partitions",
                "number of partitions in `unowned` that also had no owner after the previous rebalance",
            ),
            column(
                "claimed_twice",
                NAMED_PARTITIONS,
                "partitions that several members claimed for the same generation when they joined. Claims in the user"
                " data of `sticky` members are not compared, because these members have revoked their partitions",
            ),
            int32(
                "eager_claimers",
                "number of members that wrongly claimed partitions when they joined. With an eager strategy, a member"
                " must revoke all its partitions before it joins. The value is 0 if the strategy is not eager",
            ),
            int32(
                "subscriptions",
                "number of different subscriptions of the members. An unknown subscription is not counted."
                " Null if every subscription is unknown",
            ),
            int64(
                "sync_time_ms",
                "milliseconds from the end of the join phase to the leader's assignment. Null if unknown",
            ),
            int64(
                "skipped_generations",
                "number of generations without a record since the previous row. For example, the value is 1 if the"
                " previous row has the generation 5 and this row has the generation 7",
            ),
            texts(
                "not_known",
                "names of the values that are unknown in this row, for example `group_epoch`, `member_metadata` or"
                " `member_assignment`",
            ),
            texts(
                "conditions",
                "conditions that are active after this rebalance, for example `rebalance_storm`. The column contains"
                " only the conditions that the monitor derives from rebalances. The metric"
                " `rebalance_monitor_group_condition` uses the same names",
            ),
            column(
                "rebalances_by_cause_total",
                _BY_CAUSE,
                "number of rebalances for each cause since the monitor first saw the group",
            ),
            column(
                "moved_partitions_total",
                _BY_NEED,
                "number of partition moves since the monitor first saw the group. The field `necessary` is `true`,"
                " `false` or `unknown`",
            ),
        ]
    ),
)

GROUP_CONDITIONS = Table(
    "group_conditions",
    "the start or the end of one condition of a group. `sampled_time` is the time of the first sample that showed the"
    " start or the end. At the first sample of each UTC date, the monitor writes the row of every active condition"
    " again. So an active condition always has a recent row",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            text(
                "condition",
                "name of the condition. The names are `rolling_restart`, `rebalance_storm`, `flapping_member`,"
                " `endless_cooperative_rejoin`, `eager_and_cooperative_mixed`, `duplicate_claims`,"
                " `subscription_mismatch`, `unowned_partitions`, `stuck_rebalance`, `silent_group`,"
                " `silent_static_member`, `stuck_reconciliation`, `long_commit_gap` and `subscribed_topic_missing`."
                " The rules are in `streaming/evaluation/rebalances/condition_detectors.py` and in"
                " `streaming/evaluation/conditions` (`silence.py`, `unowned.py`, `reconciliation.py`,"
                " `commit_gaps.py`, `missing_topics.py`)",
            ),
            boolean(
                "active",
                "true if the condition is active. false if the condition ended, or if the group no longer exists",
            ),
            boolean(
                "is_repeated",
                "false in the row in which the condition started or ended. true in the row that the monitor adds on"
                " each later UTC date while the condition is active",
            ),
            time("since_time", "time when the monitor first saw the condition. The condition may have started earlier"),
            text(
                "detail", "details of the condition, for example the member, the number of repetitions or the duration"
            ),
            time(
                "read_up_to_time",
                "progress of the monitor at this sample: the monitor had read all records of the group up to this"
                " time. Null if `is_repeated` is true, or if the group no longer exists",
            ),
        ]
    ),
)

COMMIT_GAPS = Table(
    "commit_gaps",
    "one commit gap. A commit gap is the time from the last commit before a rebalance to the first commit after the"
    " rebalance. To join a commit gap with its row in the table `rebalances`, use the columns `offsets_topic_partition`"
    " and `offsets_topic_offset`. The monitor writes the row of a gap when it closes the gap (see `closed_by`). If"
    " `source.kind` is `admin-api`, the table has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            int64(
                "commit_gap_ms",
                "milliseconds from the group's last commit before the rebalance to its first commit after the"
                " rebalance. Null if unknown",
            ),
            text(
                "unknown_reason",
                "reason why `commit_gap_ms` is unknown. `no_commit_before` means that the group had no commit before"
                " the rebalance. `no_commit_after` means that the monitor closed the gap before the group committed"
                " again. `offsets_missing` means that a record in the gap is missing or could not be decoded, and this"
                " record is possibly a commit. `clock_went_back` means that the first commit after the rebalance has an"
                " earlier timestamp than the last commit before the rebalance. The cause is that the clocks of two"
                " brokers differ",
            ),
            text("worst_topic", "topic of the worst partition, which is the partition with the longest commit gap"),
            int32(
                "worst_partition",
                "partition number of the worst partition. Null if unknown, or if no partition had a commit after the"
                " rebalance",
            ),
            int64(
                "worst_gap_ms",
                "commit gap of the worst partition: milliseconds from its last commit before the rebalance to its first"
                " commit after the rebalance",
            ),
            int32(
                "silent_partitions",
                "number of partitions that had a commit before the rebalance, but no new commit until the monitor"
                " closed the gap. Null if unknown",
            ),
            int64(
                "usual_interval_ms",
                "mean milliseconds between two consecutive commits of the same partition, in the generation before the"
                " rebalance. Null if unknown",
            ),
            int64(
                "recommitted_records",
                "number of records that the group read again, because committed offsets decreased during the"
                " rebalance. The value is the sum of these decreases in all partitions. The real number can be larger,"
                " because the value does not include records that members read but did not commit. Null if unknown, or"
                " if no partition has a commit both before and after the rebalance. Also null if it is possible that"
                " an operator reset the offsets, or if a client committed an impossible offset, for example 2^63 - 1",
            ),
            text(
                "closed_by",
                "reason why the monitor closed the gap. `all_committed` means that each partition with a commit before"
                " the rebalance has a new commit. Partitions whose committed offset no longer exists are ignored."
                " `next_rebalance` means that the next rebalance started, or that the group was upgraded or"
                " downgraded. `round_passed` means that more than `evaluation.stuck_after_seconds` have passed since"
                " the rebalance. `group_deleted` means that the group was deleted while the gap was open. The monitor"
                " writes this row only after it has read a later record in the same `__consumer_offsets` partition."
                " However, Kafka usually deletes the commits of a group before it deletes the group. Then the value is"
                " `all_committed`, and the monitor writes the row at once. `nothing_before` means that the group had"
                " no commit before the rebalance",
            ),
            time(
                "last_commit_time",
                "start of the gap: the coordinator's timestamp of the group's last commit before the rebalance. Null"
                " if unknown",
            ),
        ]
    ),
)
