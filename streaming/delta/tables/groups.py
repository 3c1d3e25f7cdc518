"""Defines the tables of the history of groups: generations, rebalances, conditions and commit gaps."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GENERATION,
    GROUP,
    NAMED_PARTITIONS,
    RECORD,
    SAMPLED,
    TIME,
    TOPIC_PARTITIONS,
    Table,
    column,
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
    "source of the column protocol. records: a record contains the name of the strategy. broker: only the group"
    " coordinator reported the strategy. This is the case if no member of a KIP-848 group names an assignor, or if"
    " source.kind is admin-api. null: protocol is null, or an earlier version of the monitor wrote the row"
)

GROUP_GENERATIONS = Table(
    "group_generations",
    "the state of a group after one record that changed the group. Such records are: a new generation with its"
    " assignment, the rejoin of a static member, a new epoch, a new assignment epoch, the end of a reconciliation, the"
    " transition to Empty, the tombstone of the group. If the brokers no longer list a group, and no record shows its"
    " end, the table has a row with the state Gone. This row has the position of the group's last record",
    pa.schema(
        [
            *RECORD,
            GROUP,
            column("group_type", pa.string(), "type of the group: classic, consumer (KIP-848), share or streams"),
            column(
                "state",
                pa.string(),
                "state of the group: Stable, Empty, Assigning, Reconciling, Dead, Gone (the brokers no longer list the"
                " group, and no record shows its end) or Unknown (records are missing, or the group is a streams group"
                " with members)",
            ),
            GENERATION,
            column(
                "assignment_epoch",
                pa.int32(),
                "epoch for which the coordinator computed the target assignments. Null for classic groups",
            ),
            column(
                "protocol_type", pa.string(), "protocol type that the members reported, for example consumer or connect"
            ),
            column("protocol", pa.string(), "name of the strategy that the coordinator chose. Null if unknown"),
            column("protocol_source", pa.string(), PROTOCOL_SOURCE),
            column("leader", pa.string(), "member id of the group leader"),
            column(
                "members",
                pa.list_(_MEMBER),
                "members, sorted by member id. owned: partitions that the member of a classic group claimed when it"
                " joined. assignment: partitions that the member may consume. target: partitions that the member"
                " should get. pending_revocation: partitions that the member must give up. A field is null if no"
                " record contains its value. topic_id is set only if the topic's name is unknown",
            ),
            column(
                "not_known",
                pa.list_(pa.string()),
                "names of the data that the records do not contain: group_epoch, member_metadata, current_assignment,"
                " target_assignment, resolved_regex, topic_names (the row contains topic ids instead),"
                " member_subscription, member_assignment (the monitor could not decode the bytes of a classic member)."
                " If source.kind is admin-api, the column also lists data that coordinators do not return",
            ),
            column("rebalances_total", pa.int64(), "number of rebalances since the monitor first saw the group"),
            column(
                "rebalances_failed_total",
                pa.int64(),
                "number of generations that members joined but that never got an assignment, since the monitor first"
                " saw the group. Only cases that the records prove count. Null if source.kind is admin-api and the"
                " group is a classic group",
            ),
            column(
                "empty_transitions_total",
                pa.int64(),
                "number of times that the last member left the group, since the monitor first saw the group",
            ),
            column(
                "incarnations", pa.int32(), "number of times that the group was created, including the first creation"
            ),
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
            column(
                "kind",
                pa.string(),
                "kind of the change. static_rejoin: a static member rejoined with a new member id. This is not a"
                " rebalance. became_empty: the last member left. first_seen: the monitor has no earlier data about the"
                " group. created: the group was created again. upgraded: the group changed to KIP-848. downgraded: the"
                " group changed back to the classic protocol. deleted: the record is a tombstone of the group. If the"
                " group's next row has the kind upgraded or downgraded, the tombstone is part of this change, and the"
                " group still exists. rebalance: all other changes",
            ),
            column(
                "primary_cause",
                pa.string(),
                "most important cause: the first entry of the column causes. Null if unknown, or if the row is not a"
                " rebalance",
            ),
            column(
                "causes",
                pa.list_(pa.string()),
                "causes that the records prove. The most important cause comes first. The values are strategy_changed,"
                " member_gone (the member left, timed out or was fenced: the records do not show which), member_joined,"
                " subscription_changed, metadata_changed (a topic has more partitions than before),"
                " cooperative_followup, unexplained (for example, a topic was deleted). strategy_changed is also listed"
                " if only the group coordinator reported the change of the strategy. Null if records are missing",
            ),
            column("members", pa.int32(), "number of members after the rebalance"),
            column("protocol", pa.string(), "name of the strategy after the rebalance"),
            column("protocol_source", pa.string(), PROTOCOL_SOURCE),
            column("previous_protocol", pa.string(), "name of the strategy before the rebalance"),
            column(
                "changes",
                pa.list_(_MEMBER_CHANGE),
                "members with a change. Possible changes: the member joined, left, rejoined (a static member with a new"
                " member id), changed its subscription, or has different partitions than before. revoked: partitions"
                " that the member had before and does not have now. assigned: partitions that the member has now and"
                " did not have before. If the name of a topic is unknown, the topic is listed by its id",
            ),
            column(
                "moved_partitions",
                pa.int32(),
                "number of partitions that moved to a different owner. A cooperative rebalance can have several rounds,"
                " with one row for each round. The row of the last round contains the number for all rounds, and the"
                " earlier rows contain null. Also null if unknown",
            ),
            column(
                "fewest_moves",
                pa.int32(),
                "smallest number of moves to reach an assignment that is at least as balanced as the actual"
                " assignment. Null if the column unowned is not empty, or if a partition has two owners",
            ),
            column(
                "fewest_is_exact", pa.bool_(), "true if fewest_moves is exact. false if fewest_moves is a lower bound"
            ),
            column(
                "withheld_partitions",
                pa.int32(),
                "number of partitions that a member must give up and that no member gets in this round of a cooperative"
                " rebalance (KIP-429). Usually a different member gets these partitions in the next round. If their"
                " topic was deleted, no member gets them",
            ),
            column(
                "unowned",
                NAMED_PARTITIONS,
                "partitions that have no owner now, but that had an owner before or that a member claims. Withheld"
                " partitions are included. The records do not show whether these partitions still exist",
            ),
            column(
                "unowned_before_partitions",
                pa.int32(),
                "number of partitions that have no owner in this row and also had no owner in the previous row",
            ),
            column("claimed_twice", NAMED_PARTITIONS, "partitions that two members claimed to own when they joined"),
            column(
                "eager_claimers",
                pa.int32(),
                "number of members that claimed partitions when they joined, although the strategy is eager",
            ),
            column("subscriptions", pa.int32(), "number of different subscriptions among the members"),
            column(
                "sync_time_ms",
                pa.int64(),
                "milliseconds that the group waited for the leader's assignment after the join phase. Null if the"
                " record does not show this time",
            ),
            column(
                "skipped_generations",
                pa.int64(),
                "number of generations without a record between the previous row and this row",
            ),
            column(
                "not_known",
                pa.list_(pa.string()),
                "names of the data that are missing: group_epoch, member_metadata, member_assignment, ...",
            ),
            column(
                "conditions",
                pa.list_(pa.string()),
                "conditions that are active after this rebalance, for example rebalance_storm. The column lists only"
                " conditions that follow from rebalances. The metric rebalance_monitor_group_condition uses the same"
                " names",
            ),
            column(
                "rebalances_by_cause_total",
                _BY_CAUSE,
                "number of rebalances for each cause, since the monitor first saw the group",
            ),
            column(
                "moved_partitions_total",
                _BY_NEED,
                "number of moved partitions for each value of necessary (true, false or unknown), since the monitor"
                " first saw the group",
            ),
        ]
    ),
)

GROUP_CONDITIONS = Table(
    "group_conditions",
    "the start or the end of one condition of a group, as seen at one sample. The first sample of each UTC date repeats"
    " the row of every active condition. So each active condition still has a row after the deletion of old rows",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            column(
                "condition",
                pa.string(),
                "name of the condition, which is one of rolling_restart, rebalance_storm, flapping_member,"
                " endless_cooperative_rejoin, eager_and_cooperative_mixed, duplicate_claims, subscription_mismatch,"
                " unowned_partitions, stuck_rebalance, silent_group, silent_static_member, stuck_reconciliation,"
                " long_commit_gap or subscribed_topic_missing. The rules are in"
                " streaming/evaluation/rebalances/detectors.py and in streaming/evaluation/conditions (silence.py,"
                " unowned.py, reconciliation.py, commit_gaps.py, missing_topics.py)",
            ),
            column("active", pa.bool_(), "true if the condition started. false if the condition or the group ended"),
            column(
                "is_repeated", pa.bool_(), "true if the row repeats a condition that started on an earlier UTC date"
            ),
            column(
                "since_time",
                TIME,
                "time when the monitor first saw the condition. The condition may have started earlier",
            ),
            column(
                "detail",
                pa.string(),
                "details of the condition at the last check, for example the member, the number of repetitions or the"
                " duration",
            ),
            column(
                "read_up_to_time",
                TIME,
                "when the monitor wrote this row, it had read the group's records up to this time. Null in repeated"
                " rows, and if the group no longer exists",
            ),
        ]
    ),
)

COMMIT_GAPS = Table(
    "commit_gaps",
    "one commit gap: the time around one rebalance in which no member of the group committed. The row has the same"
    " position as the row of the rebalance in the table rebalances. The monitor writes the row when it closes the gap."
    " It closes the gap at the latest when the records of the __consumer_offsets partition are more than"
    " evaluation.stuck_after_seconds newer than the rebalance. If source.kind is admin-api, the table has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "commit_gap_ms",
                pa.int64(),
                "milliseconds from the group's last commit before the rebalance to its first commit after the"
                " rebalance. Null if unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why commit_gap_ms is unknown: no_commit_before (no commit before the rebalance),"
                " no_commit_after (no commit after the rebalance until the monitor closed the gap), offsets_missing (a"
                " record in the gap was compacted, aborted or quarantined, or is a transaction marker), clock_went_back"
                " (the first commit after the rebalance has an earlier timestamp than the last commit before it)",
            ),
            column(
                "worst_topic",
                pa.string(),
                "topic of the worst partition: the partition that waited longest for its first commit after the"
                " rebalance",
            ),
            column(
                "worst_partition",
                pa.int32(),
                "number of the worst partition. Null if unknown, or if no partition had a commit after the rebalance",
            ),
            column(
                "worst_gap_ms",
                pa.int64(),
                "milliseconds from the last commit of the worst partition before the rebalance to its first commit"
                " after the rebalance",
            ),
            column(
                "silent_partitions",
                pa.int32(),
                "number of partitions with a commit before the rebalance, but without a commit from the rebalance until"
                " the monitor closed the gap. Null if unknown",
            ),
            column(
                "usual_interval_ms",
                pa.int64(),
                "mean time between two commits of the same partition in the previous generation, in milliseconds."
                " Null if unknown",
            ),
            column(
                "recommitted_records",
                pa.int64(),
                "number of records that were processed twice, because the first commit after the rebalance is lower"
                " than the last commit before it. The value is the sum over all partitions of the last committed offset"
                " before the rebalance minus the first committed offset after it. Partitions whose committed offset did"
                " not decrease count as 0. The real number of repeated records can be higher. Offset resets of a group"
                " without members do not count. Null if unknown, or if no partition has both commits",
            ),
            column(
                "closed_by",
                pa.string(),
                "reason why the monitor closed the gap: all_committed (each partition with a commit before the"
                " rebalance has a new commit, or its committed offset was deleted); next_rebalance; round_passed"
                " (evaluation.stuck_after_seconds passed); group_deleted; nothing_before (there was no commit before"
                " the rebalance)",
            ),
            column(
                "last_commit_time",
                TIME,
                "start of the gap: the coordinator's timestamp of the group's last commit before the rebalance. Null if"
                " unknown",
            ),
        ]
    ),
)
