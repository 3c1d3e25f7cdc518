"""Alerts on the rebalances of consumer groups. The value of each alert is the start time of its condition."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CRITICAL, GROUP, INFO, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import ABOVE_MAX, AND_ABOVE_MAX, NOT_ROLLING, condition_start, lines
from dashboards.alerts.texts import (
    GROUP_MEMBERS,
    IN_GROUP,
    LAG_SECONDS,
    RECORDS_WAIT,
    START,
    by_label,
    known,
    known_with,
)

_STORM = condition_start("rebalance_storm|flapping_member")
_STORM_WITH_HARM = lines(
    _STORM,
    "and on (cluster, group) (",
    f"  {ABOVE_MAX}",
    '  or on (cluster, group) rebalance_monitor_group_condition{condition="long_commit_gap"}',
    ")",
)
_STUCK = condition_start("stuck_rebalance|stuck_reconciliation", "cluster, group, condition")
_STUCK_REBALANCE = condition_start("stuck_rebalance", "cluster, group, condition")
_STUCK_WITH_HARM = lines(
    f"{_STUCK_REBALANCE} and on (cluster, group) rebalance_monitor_group_lag > 0", "or", f"{_STUCK} {AND_ABOVE_MAX}"
)
_FAULTS = condition_start(
    "endless_cooperative_rejoin|duplicate_claims|subscribed_topic_missing", "cluster, group, condition"
)
_MIXED = condition_start("eager_and_cooperative_mixed", "cluster, group, condition")

_FLAPPING = known_with(
    "group_condition",
    'condition="flapping_member"',
    " One member joins and leaves again and again. The group's page names this member.",
)
_LONG_GAP = known_with(
    "group_condition",
    'condition="long_commit_gap"',
    " The time without commits around a rebalance was longer than the group's limit.",
)
_CAUSE = known(
    "topk(1, increase(rebalance_monitor_rebalances_by_cause_total@[10m]) > 0)",
    ' The most frequent cause is {{ . | first | label "cause" }}.',
)
_COMMIT_GAP_LIMIT = known_with(
    "group_limit",
    'limit="max_commit_gap_seconds"',
    "the limit of {{ . | first | value | humanizeDuration }}{{ else }}the group's limit",
)

REBALANCES: Final = AlertFile(
    "3-rebalances",
    "Alerts on rebalances of consumer groups. The value of each alert is the start time of its "
    "condition.\nstreaming/evaluation/rebalances/condition_detectors.py and streaming/evaluation/conditions/ define "
    "the conditions.",
    (
        Alert(
            "KafkaRollingRestart",
            GROUP,
            harm="The alert sends no notification and only suppresses warnings that a deployment causes.",
            levels=(Level(INFO, condition_start("rolling_restart"), "0s", "5m"),),
            summary=f"{IN_GROUP}a rolling restart is in progress",
            description=f"A rolling restart has been in progress since {START}. Members restart one after the other. "
            f"Without static membership (group.instance.id), each restart causes rebalances. What to do: nothing.",
        ),
        Alert(
            "KafkaRebalanceStorm",
            GROUP,
            harm="Rebalances interrupt the members again and again, so the group processes fewer records.",
            levels=(Level(CRITICAL, _STORM_WITH_HARM, "5m"), Level(WARNING, _STORM, "5m")),
            summary=f"{IN_GROUP}the group rebalances again and again",
            description=f"The group has rebalanced again and again since "
            f"{START}.{_CAUSE}{_FLAPPING}{GROUP_MEMBERS}{_LONG_GAP}{RECORDS_WAIT}{LAG_SECONDS} With an eager strategy, "
            f"no member works during a rebalance. Likely causes: the work for one poll takes longer than "
            f"max.poll.interval.ms, a member is killed again and again, or two processes have the same "
            f"group.instance.id. What to do: open the group's page, and find the members that leave and join. Read "
            f"the logs of these members.",
        ),
        Alert(
            "KafkaCommitGapLong",
            GROUP,
            harm="A rebalance interrupted the commits for too long. Without a fix, this will probably happen again.",
            levels=(Level(WARNING, condition_start("long_commit_gap"), "0s"),),
            summary=f"{IN_GROUP}a rebalance interrupted the commits for too long",
            description=f"The time without commits around a rebalance was longer than {_COMMIT_GAP_LIMIT}. The monitor "
            f"first saw this gap at {START}. Records waited, or the group processed some records twice. Likely causes: "
            f"a crashed member with a long session.timeout.ms, members that restore their state, or an eager strategy. "
            f"What to do: find the cause and the length of the last rebalances on the group's page. Consider static "
            f"membership or a cooperative strategy.",
        ),
        Alert(
            "KafkaRebalanceStuck",
            GROUP,
            harm="A rebalance that does not finish can stop all members of a classic group, or one member of a KIP-848 "
            "group.",
            levels=(Level(CRITICAL, _STUCK_WITH_HARM, "2m"), Level(WARNING, _STUCK, "2m")),
            summary=IN_GROUP
            + by_label(
                "condition",
                {
                    "stuck_rebalance": "a rebalance does not finish",
                    "stuck_reconciliation": "a member does not reach its target assignment",
                },
            ),
            description=by_label(
                "condition",
                {
                    "stuck_rebalance": f"The rebalance did not finish in time. The allowed time ended at {START}. With "
                    f"an eager strategy, no member makes progress. Likely causes: a member hangs and does not rejoin, "
                    f"or a member crashed and its session has not timed out yet.",
                    "stuck_reconciliation": f"A member of this KIP-848 group did not reach its target assignment in "
                    f"time. The allowed time ended at {START}. This member makes no progress. The other members "
                    f"continue. Likely causes: the member hangs, or it does not revoke a partition.",
                },
            )
            + f"{RECORDS_WAIT}{LAG_SECONDS} What to do: find the member that does not respond "
            f"(kafka-consumer-groups.sh --describe --members) and restart this member.",
        ),
        Alert(
            "KafkaProtocolFault",
            GROUP,
            harm="The clients do not follow the rebalance protocol, or they subscribe to a topic that does not exist. "
            "So the group may process records twice or not at all.",
            levels=(Level(WARNING, lines(_FAULTS, "or", f"{_MIXED} {NOT_ROLLING}"), "5m"),),
            summary=IN_GROUP
            + by_label(
                "condition",
                {
                    "endless_cooperative_rejoin": "cooperative rebalances do not end",
                    "duplicate_claims": "two members claimed the same partition",
                    "eager_and_cooperative_mixed": "the group mixes eager and cooperative strategies",
                    "subscribed_topic_missing": "a subscribed topic does not exist",
                },
            ),
            description=by_label(
                "condition",
                {
                    "endless_cooperative_rejoin": f"Since {START}, the group has rebalanced again and again, but no "
                    f"member joins, leaves or changes anything. Likely causes: the assignor of the group leader "
                    f"never reaches a final assignment. What to do: update the client of the group leader, or use a "
                    f"different strategy.",
                    "duplicate_claims": f"Two members rejoined, and both claimed the same partition in the same "
                    f"generation. The monitor first saw the two claims at {START}. Records may have been processed "
                    f"twice. Likely causes: a removed member joined again, or a client has an old version. What to do: "
                    f"search the downstream systems for duplicates. Update old clients.",
                    "eager_and_cooperative_mixed": f"Members claim partitions even though the strategy is eager, or "
                    f"the group changed its strategy more than once. The monitor first saw this problem at {START}. "
                    f"Some partitions may have two owners, or no owner. Likely causes: an unfinished upgrade. What to "
                    f"do: give all members the same list of strategies in two rolling restarts.",
                    "subscribed_topic_missing": f"Members subscribe by name to a topic that the brokers do not know. "
                    f"The monitor first reported the missing topic at {START}. The members read nothing from this "
                    f"topic. Likely causes: the name is misspelled, or the topic was deleted. What to do: see the name "
                    f"of the topic on the group's page. Correct the subscription, or create the topic.",
                },
            ),
        ),
    ),
)
