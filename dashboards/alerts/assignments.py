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
# The first two parts of `_SKEWED`. For these groups, the value of the alert is a number of partitions.
_COUNTS_PARTITIONS = (
    f"rebalance_monitor_excess_partitions@ > 1 or rebalance_monitor_excess_partitions@ > 0 {AND_ABOVE_MAX}"
)
_RECORDS = "{{ $value | humanize }}"
_MORE_THAN_FAIR = "In the fairest assignment, the busiest member would hold {{ $value }} fewer than now."
_BUSIEST = known(
    "topk(1, rebalance_monitor_busiest_member@)",
    f"{{{{ with first . }}}}Client {{{{ .Labels.client_id }}}} on {{{{ .Labels.client_host }}}}{{{{ with "
    f".Labels.group_instance_id }}}} (instance {{{{ . }}}}){{{{ end }}}} holds {{{{ .Value }}}} partitions. "
    f"{_MORE_THAN_FAIR}{{{{ end }}}}{{{{ else }}}}One member holds too many partitions. {_MORE_THAN_FAIR}",
)
_BUSIEST_OR_UNEVEN = known(
    _COUNTS_PARTITIONS,
    f"{_BUSIEST}{{{{ else }}}}One member receives too many records. In the fairest assignment, the busiest member "
    f"would receive {_RECORDS} fewer records per second than now.",
)
_CAUSE = known(
    "topk(1, rebalance_monitor_topic_skew@)",
    "{{ with first . }} Cause of the uneven assignment: topic skew. In several topics, the same members hold one "
    "partition more than the other members.{{ with .Labels.remedy }} What to do: change the group's strategy to "
    "{{ . }}. This strategy removes the topic skew.{{ else }} What to do: compare the strategies in the what-if table "
    "on the group's page.{{ end }}{{ end }}{{ else }}"
    + known_with(
        "group_condition",
        'condition="subscription_mismatch"',
        " Cause of the uneven assignment: members subscribe to different topics. What to do: give each application its "
        "own group id, or finish the deployment.{{ else }} Likely causes of the uneven assignment: a client uses its "
        "own strategy, or members subscribe to different topics. What to do: compare the strategies in the what-if "
        "table on the group's page.",
    ),
)

_CAUSE_OR_UNEVEN = known(
    _COUNTS_PARTITIONS,
    f"{_CAUSE}{{{{ else }}}} What to do: find the busiest member on the group's page (section 'How the work is "
    "shared'). Compare the strategies in the what-if table.",
)

_DRIFT = lines(
    'max by (cluster, group, strategy) (rebalance_monitor_assignment_verdict{verdict="drift"}) == 1', NOT_ROLLING
)
_UNOWNED = lines(condition_start("unowned_partitions"), NOT_ROLLING)

ASSIGNMENTS: Final = AlertFile(
    "2-assignments",
    "Alerts on the assignments of consumer groups.",
    (
        Alert(
            "KafkaAssignmentSkewed",
            GROUP,
            harm="One member has too many partitions or receives too many records, so this member will lag before the "
            "others.",
            levels=(Level(CRITICAL, _SKEWED_AND_LATE, "10m"), Level(WARNING, _SKEWED, "10m")),
            summary=IN_GROUP
            + known(
                _COUNTS_PARTITIONS,
                "the busiest member holds {{ $value }} {{ if eq $value 1.0 }}partition{{ else }}partitions{{ end }} "
                f"more than necessary{{{{ else }}}}the busiest member receives {_RECORDS} more records per second "
                "than necessary",
            ),
            description=f"{_BUSIEST_OR_UNEVEN}{SINCE_ASSIGNMENT}{RECORDS_WAIT}{LAG_SECONDS}{WORST_PARTITION}{LAG_CAUSE}"
            f"{_CAUSE_OR_UNEVEN}",
        ),
        Alert(
            "KafkaAssignmentDrift",
            GROUP,
            harm="The assignment breaks a rule of the group's strategy, because a client has a defect or uses old "
            "metadata.",
            levels=(Level(WARNING, _DRIFT, "10m"),),
            summary=f"{IN_GROUP}the assignment does not follow the strategy {{{{ $labels.strategy }}}}",
            description='{{ with printf "rebalance_monitor_drift_partitions{cluster=%q,group=%q,strategy=%q}" '
            f"$labels.cluster $labels.group $labels.strategy | query }}}}Partitions assigned against a rule of the "
            f"strategy: {{{{ . | first | value }}}}.{{{{ else }}}}The assignment of some partitions breaks a rule of "
            f"the strategy.{{{{ end }}}}{SINCE_ASSIGNMENT} Likely causes: the group leader does not follow the "
            f"strategy, or it uses old topic metadata. What to do: find the partitions and the broken rule on the "
            f"group's page. Compare the client versions of the members.",
        ),
        Alert(
            "KafkaPartitionsUnowned",
            GROUP,
            harm="Some partitions have no owner, so no member reads the records in these partitions.",
            levels=(
                Level(CRITICAL, lines(_UNOWNED, "and on (cluster, group) rebalance_monitor_unowned_records > 0"), "1m"),
                Level(WARNING, _UNOWNED, "1m"),
            ),
            summary=f"{IN_GROUP}partitions have no owner, so no member reads them",
            description=number("rebalance_monitor_unowned_partitions@", "Subscribed partitions without an owner: #. ")
            + f"The partitions have had no owner since {START} or earlier."
            + number("rebalance_monitor_unowned_records@", " # records wait in these partitions.", "humanize")
            + " Likely causes: the clients do not see new partitions of a topic yet, the assignment is incomplete, or "
            "a cooperative rebalance does not finish. What to do: restart the group leader. The group's page names the "
            "group leader. If the restart does not help, restart all members.",
        ),
    ),
)
