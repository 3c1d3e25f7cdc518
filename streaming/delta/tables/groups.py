"""Tables of what groups went through."""

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

GROUP_GENERATIONS = Table(
    "group_generations",
    "one record after which a group is another: a synced generation, a static member's rejoin, an epoch, an assignment"
    " epoch, the end of a reconciliation, a transition to Empty, a tombstone; or the end of a group of which no record"
    " tells (state Gone, at the position of its last record)",
    pa.schema(
        [
            *RECORD,
            GROUP,
            column("group_type", pa.string(), "classic, consumer (KIP-848), share or streams"),
            column(
                "state",
                pa.string(),
                "Stable, Empty, Assigning, Reconciling, Dead; Gone: the brokers list it no more and no record says so;"
                " Unknown: records are missing, or a streams group has members",
            ),
            GENERATION,
            column("assignment_epoch", pa.int32(), "epoch the targets were computed for; null for classic groups"),
            column("protocol_type", pa.string(), "consumer, connect, ... as the members gave it"),
            column("protocol", pa.string(), "the strategy the coordinator chose"),
            column("leader", pa.string(), "member id of the group leader"),
            column(
                "members",
                pa.list_(_MEMBER),
                "sorted by member id. owned: claimed when joining (classic); assignment: what it may consume; target:"
                " what it shall have; pending_revocation: told to give up; null: no record told. topic_id only where"
                " nobody can tell the topic's name",
            ),
            column(
                "not_known",
                pa.list_(pa.string()),
                "what the records read so far leave open: group_epoch, member_metadata, current_assignment,"
                " target_assignment, resolved_regex, topic_names (topics by id), member_subscription, member_assignment"
                " (bytes of a classic member that could not be read); with source.kind admin-api also what coordinators"
                " do not tell",
            ),
            column("rebalances_total", pa.int64(), "rebalances since the group was first seen"),
            column(
                "rebalances_failed_total",
                pa.int64(),
                "those of them proven to have been joined and never synced; null where none can be proven",
            ),
            column("empty_transitions_total", pa.int64(), "times the last member left"),
            column("incarnations", pa.int32(), "how often the group was created anew, the first time included"),
        ]
    ),
)

REBALANCES = Table(
    "rebalances",
    "one generation or epoch of a group, held against the one before; a KIP-848 group's once its targets are made",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "kind",
                pa.string(),
                "rebalance; static_rejoin: a static member under a new member id, no rebalance; became_empty;"
                " first_seen: nothing is known of before; created: anew; upgraded to KIP-848, downgraded from it;"
                " deleted: its tombstone (where the next row is upgraded or downgraded, the group lived on)",
            ),
            column(
                "primary_cause",
                pa.string(),
                "the first of causes; null where unknown, and for what is no rebalance",
            ),
            column(
                "causes",
                pa.list_(pa.string()),
                "what the records prove, by precedence: strategy_changed, member_gone (left, timed out and fenced look"
                " alike), member_joined, subscription_changed, metadata_changed, cooperative_followup, unexplained;"
                " null: records are missing",
            ),
            column("members", pa.int32(), "members after it"),
            column("protocol", pa.string(), "the strategy after it"),
            column("previous_protocol", pa.string(), "the strategy before it"),
            column(
                "changes",
                pa.list_(_MEMBER_CHANGE),
                "members that joined, are gone, rejoined (static, new member id), resubscribed, or have other"
                " partitions than before; revoked and assigned are net, a topic nobody can name is given by its id",
            ),
            column(
                "moved_partitions",
                pa.int32(),
                "partitions that changed owner; a cooperative rebalance counts them in its last round;"
                " null: unknown, or a later round counts them",
            ),
            column(
                "fewest_moves",
                pa.int32(),
                "partitions that had to move for an assignment as balanced; null where a partition has no owner or two",
            ),
            column("fewest_is_exact", pa.bool_(), "false: fewest_moves is a lower bound"),
            column("withheld_partitions", pa.int32(), "partitions a member has to give up first (KIP-429, round one)"),
            column("unowned", NAMED_PARTITIONS, "partitions assigned to nobody, those withheld included"),
            column(
                "unowned_before_partitions", pa.int32(), "those of them that nobody had after the row before either"
            ),
            column("claimed_twice", NAMED_PARTITIONS, "partitions two members claimed to own when they joined"),
            column("eager_claimers", pa.int32(), "members that claimed partitions under an eager strategy"),
            column("subscriptions", pa.int32(), "different subscriptions among the members"),
            column(
                "sync_time_ms",
                pa.int64(),
                "milliseconds from the end of the join to the leader's assignment; null where the record does not tell",
            ),
            column("skipped_generations", pa.int64(), "generations since the row before that no record carries"),
            column(
                "not_known",
                pa.list_(pa.string()),
                "what is missing: group_epoch, member_metadata, member_assignment, ...",
            ),
            column(
                "conditions",
                pa.list_(pa.string()),
                "what the last rebalances show together, as of the record: rebalance_storm, rolling_restart,"
                " flapping_member, ... as in the metric rebalance_monitor_group_condition",
            ),
            column("rebalances_by_cause_total", _BY_CAUSE, "rebalances read since the group was first seen, by cause"),
            column(
                "moved_partitions_total",
                _BY_NEED,
                "partitions moved since then: necessary true, false, or unknown",
            ),
        ]
    ),
)

GROUP_CONDITIONS = Table(
    "group_conditions",
    "a condition of a group that began to hold, or ended, at one sample",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            column(
                "condition",
                pa.string(),
                "rolling_restart, rebalance_storm, flapping_member, endless_cooperative_rejoin,"
                " eager_and_cooperative_mixed, duplicate_claims, subscription_mismatch, unowned_partitions,"
                " stuck_rebalance, silent_group, silent_static_member, stuck_reconciliation: the rules in"
                " streaming/judgement (detectors.py, silence.py, reconciliation.py)",
            ),
            column("holds", pa.bool_(), "true: it began; false: it ended, or the group did"),
            column("since_time", TIME, "when it was first found to hold; before that, nobody may have looked"),
            column("detail", pa.string(), "in words: which member, how often, for how long; as last found"),
            column(
                "read_up_to_time",
                TIME,
                "time up to which the group's records were read, as of which this is said; null: it is gone",
            ),
        ]
    ),
)

COMMIT_GAPS = Table(
    "commit_gaps",
    "how long a group did not commit at one rebalance, which has the same position in rebalances; written once it is"
    " closed, at the latest judgement.round_seconds after it; none with source.kind admin-api",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "commit_gap_ms",
                pa.int64(),
                "milliseconds from the group's last commit before it to its first commit after it; null where unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "why commit_gap_ms is unknown: no_commit_before, no_commit_after (until it was closed),"
                " offsets_missing (the log lacks a record in between: compacted away, aborted, a transaction's marker,"
                " or quarantined), clock_went_back",
            ),
            column("worst_topic", pa.string(), "topic of the partition that waited longest for its next commit"),
            column("worst_partition", pa.int32(), "that partition; null where none committed again, or unknown"),
            column("worst_gap_ms", pa.int64(), "milliseconds between its two commits"),
            column(
                "silent_partitions",
                pa.int32(),
                "partitions with a commit before and none after until it was closed: nothing to commit, or nobody to"
                " do it; null where unknown",
            ),
            column(
                "usual_interval_ms",
                pa.int64(),
                "mean milliseconds between two commits of a partition in the generation before; null where unknown",
            ),
            column(
                "closed_by",
                pa.string(),
                "all_committed: every partition that had a commit has one again, or lost it; next_rebalance;"
                " round_passed: judgement.round_seconds went by; group_deleted; nothing_before: there is no"
                " commit before",
            ),
        ]
    ),
)
