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
    "records: the group's records name the strategy; broker: the group coordinator reported the strategy, because no"
    " member of a KIP-848 group names an assignor, or because source.kind is admin-api; null: protocol is null, or an"
    " earlier version of the monitor wrote the row"
)

GROUP_GENERATIONS = Table(
    "group_generations",
    "one record that changed a group: a synced generation, a static member's rejoin, an epoch, an assignment epoch,"
    " the end of a reconciliation, a transition to Empty, or a tombstone. If no record shows the end of a group, the"
    " table has a row with the state Gone at the position of the group's last record",
    pa.schema(
        [
            *RECORD,
            GROUP,
            column("group_type", pa.string(), "classic, consumer (KIP-848), share or streams"),
            column(
                "state",
                pa.string(),
                "Stable, Empty, Assigning, Reconciling, Dead; Gone: the brokers no longer list the group, and no"
                " record shows its end; Unknown: records are missing, or a streams group has members",
            ),
            GENERATION,
            column(
                "assignment_epoch",
                pa.int32(),
                "epoch for which the coordinator computed the target assignments; null for classic groups",
            ),
            column(
                "protocol_type", pa.string(), "protocol type that the members reported, for example consumer or connect"
            ),
            column("protocol", pa.string(), "the strategy that the coordinator chose"),
            column("protocol_source", pa.string(), PROTOCOL_SOURCE),
            column("leader", pa.string(), "member id of the group leader"),
            column(
                "members",
                pa.list_(_MEMBER),
                "members, sorted by member id. owned: partitions that the member of a classic group claimed when it"
                " joined; assignment: partitions that the member may consume; target: partitions that the member"
                " should get; pending_revocation: partitions that the member must give up; null: no record contains"
                " the value. topic_id is set only if the topic's name is unknown",
            ),
            column(
                "not_known",
                pa.list_(pa.string()),
                "information that is missing in the records read so far: group_epoch, member_metadata,"
                " current_assignment, target_assignment, resolved_regex, topic_names (topics are listed by id),"
                " member_subscription, member_assignment (a classic member's bytes could not be decoded); if"
                " source.kind is admin-api, also information that coordinators do not return",
            ),
            column("rebalances_total", pa.int64(), "number of rebalances since the monitor first saw the group"),
            column(
                "rebalances_failed_total",
                pa.int64(),
                "number of rebalances that members joined but that never received an assignment; only cases that the"
                " records prove count; null if the source cannot prove any case",
            ),
            column("empty_transitions_total", pa.int64(), "number of times that the last member left"),
            column("incarnations", pa.int32(), "number of times that the group was created, including the first time"),
        ]
    ),
)

REBALANCES = Table(
    "rebalances",
    "one generation or epoch of a group, and what changed since the generation or epoch before. For a KIP-848 group,"
    " the row is written when the coordinator has computed the targets",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "kind",
                pa.string(),
                "rebalance; static_rejoin: a static member rejoined with a new member id, which is not a rebalance;"
                " became_empty: the last member left; first_seen: nothing earlier is known; created: the group was"
                " created again; upgraded to KIP-848; downgraded from KIP-848; deleted: a tombstone of the group (if"
                " the next row is upgraded or downgraded, the group still exists)",
            ),
            column(
                "primary_cause",
                pa.string(),
                "the first entry of causes; null if unknown, or if the row is not a rebalance",
            ),
            column(
                "causes",
                pa.list_(pa.string()),
                "causes that the records prove, the most important first: strategy_changed, member_gone (left, timed"
                " out and fenced look the same), member_joined, subscription_changed, metadata_changed,"
                " cooperative_followup, unexplained; null: records are missing. strategy_changed is also listed if"
                " only the coordinator reported the strategy",
            ),
            column("members", pa.int32(), "members after the rebalance"),
            column("protocol", pa.string(), "the strategy after the rebalance"),
            column("protocol_source", pa.string(), PROTOCOL_SOURCE),
            column("previous_protocol", pa.string(), "the strategy before the rebalance"),
            column(
                "changes",
                pa.list_(_MEMBER_CHANGE),
                "members that joined, left, rejoined (static, new member id), changed their subscription, or have"
                " different partitions than before. revoked and assigned are net changes. A topic without a known"
                " name is listed by its id",
            ),
            column(
                "moved_partitions",
                pa.int32(),
                "number of partitions that changed owner; for a cooperative rebalance, only the row of the last round"
                " has this number; null: unknown, or a later round has the number",
            ),
            column(
                "fewest_moves",
                pa.int32(),
                "smallest number of moves for an equally balanced assignment; null if a partition has no owner or two"
                " owners",
            ),
            column("fewest_is_exact", pa.bool_(), "true: fewest_moves is exact; false: fewest_moves is a lower bound"),
            column(
                "withheld_partitions",
                pa.int32(),
                "partitions that a member must give up before their new owner gets them (KIP-429, round one)",
            ),
            column("unowned", NAMED_PARTITIONS, "partitions without an owner, including withheld ones"),
            column(
                "unowned_before_partitions",
                pa.int32(),
                "number of partitions that have no owner and also had no owner at the previous row",
            ),
            column("claimed_twice", NAMED_PARTITIONS, "partitions that two members claimed to own when they joined"),
            column("eager_claimers", pa.int32(), "members that claimed partitions under an eager strategy"),
            column("subscriptions", pa.int32(), "number of different subscriptions among the members"),
            column(
                "sync_time_ms",
                pa.int64(),
                "milliseconds from the end of the join to the leader's assignment; null if the record does not show it",
            ),
            column(
                "skipped_generations",
                pa.int64(),
                "number of generations without a record that lie between the previous row and this row",
            ),
            column(
                "not_known",
                pa.list_(pa.string()),
                "missing information: group_epoch, member_metadata, member_assignment, ...",
            ),
            column(
                "conditions",
                pa.list_(pa.string()),
                "conditions that the rebalances up to this record show, for example rebalance_storm; the metric"
                " rebalance_monitor_group_condition has the same names",
            ),
            column(
                "rebalances_by_cause_total",
                _BY_CAUSE,
                "number of rebalances since the monitor first saw the group, by cause",
            ),
            column(
                "moved_partitions_total",
                _BY_NEED,
                "number of partitions that moved since the monitor first saw the group, by necessary (true, false or"
                " unknown)",
            ),
        ]
    ),
)

GROUP_CONDITIONS = Table(
    "group_conditions",
    "the start or end of a condition of a group, at one sample",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            column(
                "condition",
                pa.string(),
                "rolling_restart, rebalance_storm, flapping_member, endless_cooperative_rejoin,"
                " eager_and_cooperative_mixed, duplicate_claims, subscription_mismatch, unowned_partitions,"
                " stuck_rebalance, silent_group, silent_static_member, stuck_reconciliation,"
                " long_commit_gap. The rules are in streaming/evaluation/rebalances/detectors.py and in"
                " streaming/evaluation/conditions (silence.py, unowned.py, reconciliation.py, commit_gaps.py)",
            ),
            column("active", pa.bool_(), "true: the condition started; false: the condition or the group ended"),
            column(
                "since_time",
                TIME,
                "time at which the monitor first saw the condition; the condition may have started earlier",
            ),
            column(
                "detail",
                pa.string(),
                "description at the last check, for example the member, the number of repetitions, or the duration",
            ),
            column(
                "read_up_to_time",
                TIME,
                "time up to which the group's records were read for this row; null: the group no longer exists",
            ),
        ]
    ),
)

COMMIT_GAPS = Table(
    "commit_gaps",
    "the time around one rebalance in which no member of the group committed. In the table rebalances, the row of"
    " this rebalance has the same position. The monitor writes the row when it closes the gap. It closes the gap at"
    " the latest when a record of the same __consumer_offsets partition is more than evaluation.stuck_after_seconds"
    " newer. If source.kind is admin-api, the table has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "commit_gap_ms",
                pa.int64(),
                "milliseconds from the group's last commit before the rebalance to the group's first commit after the"
                " rebalance; null if unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why commit_gap_ms is unknown: no_commit_before, no_commit_after (no commit until the gap was"
                " closed), offsets_missing (a record in between was compacted, aborted or quarantined, or is a"
                " transaction marker), clock_went_back",
            ),
            column("worst_topic", pa.string(), "topic of the partition that waited longest for its next commit"),
            column(
                "worst_partition",
                pa.int32(),
                "number of this partition; null if no partition was committed after the rebalance, or if unknown",
            ),
            column(
                "worst_gap_ms",
                pa.int64(),
                "milliseconds from this partition's last commit before the rebalance to its first commit after the"
                " rebalance",
            ),
            column(
                "silent_partitions",
                pa.int32(),
                "partitions that had a commit before the rebalance but had no commit from the rebalance until the gap"
                " was closed, because there was nothing to commit or no member committed; null if unknown",
            ),
            column(
                "usual_interval_ms",
                pa.int64(),
                "mean milliseconds between two commits of a partition in the previous generation; null if unknown",
            ),
            column(
                "closed_by",
                pa.string(),
                "all_committed: each partition with a commit before the rebalance has a commit again, or its"
                " committed offset was deleted; next_rebalance; round_passed: evaluation.stuck_after_seconds passed;"
                " group_deleted; nothing_before: there was no commit before the rebalance",
            ),
        ]
    ),
)
