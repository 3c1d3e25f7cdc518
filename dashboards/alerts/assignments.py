"""Alerts on the assignments of consumer groups."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import AND_ABOVE_MAX, NOT_ROLLING, condition_start, group_max, lines
from dashboards.alerts.texts import (
    IN_GROUP,
    LAG_CAUSE,
    LAG_SECONDS,
    RECORDS_WAIT,
    SINCE_ASSIGNMENT,
    START,
    WORST_PARTITION,
    known,
    known_with,
    number,
)

_EXCESS = group_max("excess_partitions")
_UNEVEN_WORK = group_max("uneven_work_records_per_second")
_SKEWED_AND_LATE = lines(f"{_EXCESS} > 0", NOT_ROLLING, AND_ABOVE_MAX, f"or {_UNEVEN_WORK}", NOT_ROLLING, AND_ABOVE_MAX)
_SKEWED = lines(
    f"{_EXCESS} > 1", NOT_ROLLING, f"or {_EXCESS} > 0", NOT_ROLLING, AND_ABOVE_MAX, f"or {_UNEVEN_WORK}", NOT_ROLLING
)
# The same groups as in the first two parts of `_SKEWED`: for them, the value of the alert is a number of partitions.
_COUNTS_PARTITIONS = (
    f"rebalance_monitor_excess_partitions@ > 1 or rebalance_monitor_excess_partitions@ > 0 {AND_ABOVE_MAX}"
)
_MORE_RECORDS = "{{ $value | humanize }} records per second more than necessary"
_MORE_THAN_FAIR = "{{ $value }} more than the busiest member would hold in the fairest assignment."
_BUSIEST = known(
    "topk(1, rebalance_monitor_busiest_member@)",
    f"{{{{ with first . }}}}Client {{{{ .Labels.client_id }}}} on {{{{ .Labels.client_host }}}}{{{{ with "
    f".Labels.group_instance_id }}}} (instance {{{{ . }}}}){{{{ end }}}} holds {{{{ .Value }}}} partitions, "
    f"{_MORE_THAN_FAIR}{{{{ end }}}}{{{{ else }}}}One member holds too many partitions, {_MORE_THAN_FAIR}",
)
_BUSIEST_OR_UNEVEN = known(
    _COUNTS_PARTITIONS,
    f"{_BUSIEST}{{{{ else }}}}The partitions of one member receive {_MORE_RECORDS}.",
)
_CAUSE = known(
    "topk(1, rebalance_monitor_topic_skew@)",
    "{{ with first . }} Cause: topic skew. The same members hold the extra partition of several topics.{{ with "
    ".Labels.remedy }} What to do: change the group's strategy to {{ . }}. This strategy removes the topic skew.{{ "
    "else }} What to do: compare the strategies in the what-if table on the group's page.{{ end }}{{ end }}{{ else }}"
    + known_with(
        "group_condition",
        'condition="subscription_mismatch"',
        " Cause: members subscribe to different topics. What to do: give each application its own group id, or finish "
        "the deployment.{{ else }} Likely causes: a client uses its own strategy, or members subscribe to different "
        "topics. What to do: compare the strategies in the what-if table on the group's page.",
    ),
)

_CAUSE_OR_UNEVEN = known(
    _COUNTS_PARTITIONS,
    f"{_CAUSE}{{{{ else }}}} What to do: find the member in the table of shared work on the group's page. Compare the "
    "strategies in the what-if table.",
)

_UNOWNED = lines(condition_start("unowned_partitions"), NOT_ROLLING)

ASSIGNMENTS: Final = AlertFile(
    "2-assignments",
    "Alerts on the assignments of consumer groups.",
    (
        Alert(
            "KafkaAssignmentSkewed",
            GROUP,
            harm="One member holds more partitions than necessary. If records also wait too long, a fairer assignment "
            "helps at once. If the member holds only one partition too many, the alert fires only if records wait too "
            "long.",
            levels=(
                Level(CRITICAL, _SKEWED_AND_LATE, "10m"),
                Level(WARNING, _SKEWED, "10m"),
            ),
            summary=IN_GROUP
            + known(
                _COUNTS_PARTITIONS,
                "the busiest member holds {{ $value }} {{ if eq $value 1.0 }}partition{{ else }}partitions{{ end }} "
                f"more than necessary{{{{ else }}}}the partitions of the busiest member receive {_MORE_RECORDS}",
            ),
            description=f"{_BUSIEST_OR_UNEVEN}{SINCE_ASSIGNMENT}{RECORDS_WAIT}{LAG_SECONDS}{WORST_PARTITION}{LAG_CAUSE}"
            f"{_CAUSE_OR_UNEVEN}",
        ),
        Alert(
            "KafkaAssignmentDrift",
            GROUP,
            harm="The assignment breaks a rule of the group's strategy. This means that a client has a defect or uses "
            "old metadata.",
            levels=(
                Level(
                    WARNING,
                    lines(
                        "max by (cluster, group, strategy) "
                        '(rebalance_monitor_assignment_verdict{verdict="drift"}) == 1',
                        NOT_ROLLING,
                    ),
                    "10m",
                ),
            ),
            summary=f"{IN_GROUP}the assignment does not follow the strategy {{{{ $labels.strategy }}}}",
            description='{{ with printf "rebalance_monitor_drift_partitions{cluster=%q,group=%q,strategy=%q}" '
            f"$labels.cluster $labels.group $labels.strategy | query }}}}Partitions whose present owner breaks a rule "
            f"of the strategy: {{{{ . | first | value }}}}.{{{{ else }}}}The present owner of some partitions breaks a "
            f"rule of the strategy.{{{{ end }}}}{SINCE_ASSIGNMENT} Likely causes: the client that leads the group "
            f"computes an assignment that differs from the strategy, or this client uses old topic metadata. What to "
            f"do: find the partitions and the broken rule on the group's page. Compare the client versions of the "
            f"members.",
        ),
        Alert(
            "KafkaPartitionsUnowned",
            GROUP,
            harm="Some partitions have no owner, so no member reads them. Records in these partitions wait until "
            "somebody acts.",
            levels=(
                Level(CRITICAL, lines(_UNOWNED, "and on (cluster, group) rebalance_monitor_unowned_records > 0"), "1m"),
                Level(WARNING, _UNOWNED, "1m"),
            ),
            summary=f"{IN_GROUP}partitions have no owner, so no member reads them",
            description=number("rebalance_monitor_unowned_partitions@", "Subscribed partitions without an owner: #. ")
            + f"The partitions have had no owner since {START} or earlier."
            + number("rebalance_monitor_unowned_records@", " # records wait in these partitions.", "humanize")
            + " Likely causes: somebody added partitions to a topic and the client does not see them yet, the "
            "assignment leaves out partitions, or a cooperative rebalance does not finish. What to do: restart the "
            "member that leads the group. The group's page shows its name. If that does not help, restart all members.",
        ),
    ),
)
