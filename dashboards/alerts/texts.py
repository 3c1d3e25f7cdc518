"""Write the texts of alerts: templates that query metrics when Prometheus evaluates the alert.

A template omits each sentence whose value is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OF_GROUP = "{cluster=%q,group=%q}"


def known(query: str, text: str) -> str:
    """Return a template that shows `text` only if a query about the group has a result.

    In `query`, the template replaces `@` by the selector of the group. In `text`, `.` is the result of the query.
    """
    escaped = query.replace('"', '\\"').replace("@", _OF_GROUP)
    labels = " ".join(["$labels.cluster $labels.group"] * query.count("@"))
    return f'{{{{ with printf "{escaped}" {labels} | query }}}}{text}{{{{ end }}}}'


def known_with(metric: str, matcher: str, text: str) -> str:
    """Return a template that shows `text` only if the group has a series of `metric` that matches `matcher`."""
    selector = f"rebalance_monitor_{metric}{{cluster=%q,group=%q,{matcher}}}".replace('"', '\\"')
    return f'{{{{ with printf "{selector}" $labels.cluster $labels.group | query }}}}{text}{{{{ end }}}}'


def number(query: str, text: str, unit: str = "") -> str:
    """Return a template that shows the value of a query. In `text`, `#` is the value, formatted by `unit`."""
    formatted = f"{{{{ . | first | value{f' | {unit}' if unit else ''} }}}}"
    return known(query, text.replace("#", formatted))


def by_label(label: str, texts: Mapping[str, str]) -> str:
    """Return a template that chooses the text for the value of a label. The last text is for all other values.

    >>> by_label("x", {"a": "one", "b": "two"})
    '{{ if eq $labels.x "a" }}one{{ else }}two{{ end }}'
    """
    *others, (_, last) = texts.items()
    if not others:
        return last
    chosen = "{{ else ".join(f'if eq $labels.{label} "{value}" }}}}{text}' for value, text in others)
    return f"{{{{ {chosen}{{{{ else }}}}{last}{{{{ end }}}}"


START: Final = "{{ $value | humanizeTimestamp }}"
DURATION: Final = "{{ $value | humanizeDuration }}"
COUNT: Final = "{{ $value | humanize }}"

IN_GROUP: Final = "{{ $labels.group }} on {{ $labels.cluster }}: "
IN_CLUSTER: Final = "{{ $labels.cluster }}: "

RECORDS_WAIT: Final = number("rebalance_monitor_group_lag@", " # records wait.", "humanize")
LAG_SECONDS: Final = number(
    "rebalance_monitor_group_lag_seconds@", " The oldest uncommitted record is # old.", "humanizeDuration"
)
GROUP_MEMBERS: Final = number("rebalance_monitor_group_members@", " The group has # members.")
SINCE_ASSIGNMENT: Final = number(
    "rebalance_monitor_assignment_timestamp_seconds@", " The assignment has been in use since #.", "humanizeTimestamp"
)
LAST_COMMIT: Final = number(
    "rebalance_monitor_group_last_commit_timestamp_seconds@",
    " The last commit of the group was at #.",
    "humanizeTimestamp",
)
RATES: Final = (
    number("rebalance_monitor_group_consumed_records_per_second@", " The group reads # records per second.", "humanize")
    + number(
        "rebalance_monitor_group_produced_records_per_second@", " Producers write # records per second.", "humanize"
    )
    + known(
        "deriv(rebalance_monitor_group_lag@[3m]) > 0",
        " The lag grows.{{ else }}"
        + number("rebalance_monitor_group_catch_up_seconds@", " The group needs # to catch up.", "humanizeDuration"),
    )
)
_HOT: Final = (
    "hot partition. Partition {{ .Labels.partition }} of topic {{ .Labels.topic }} receives more records than its"
    " owner can consume. A different assignment cannot help."
)
_ASSIGNMENT: Final = (
    "the assignment. One member receives more records than it can consume{{ with .Labels.client_id }} (client {{ . "
    "}}){{ end }}. A fairer assignment would prevent this."
)
_SLOW_MEMBER: Final = (
    "slow member. {{ with .Labels.client_id }}Client {{ . }}{{ end }}{{ with .Labels.client_host }} on {{ . }}{{ end }}"
    " consumes fewer records than the other members, but the input of all members is similar."
)
_SLOW_HOST: Final = (
    "slow host. The members on {{ .Labels.client_host }} consume fewer records than the other members, but the input "
    "of all members is similar."
)
_END_TRANSACTION: Final = (
    "find the producer with kafka-transactions.sh, and restart this producer. If the producer no longer exists, "
    "abort the transaction."
)
_LAG_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "rebalancing": (
        "rebalances. Rebalances interrupt the group's commits for too long.",
        "find the reason for the rebalances on the group's page.",
    ),
    "no_members": ("the group has no members, and records wait.", "if the application is down, start it."),
    "stopped": (
        "the group has stopped. Records wait, but the group's committed offsets do not increase.",
        "read the logs of the members, and restart the members.",
    ),
    "hot_partition": (_HOT, "look at the keys of the records, or make the processing faster."),
    "assignment": (_ASSIGNMENT, "compare the strategies in the what-if table on the group's page."),
    "slow_member": (
        _SLOW_MEMBER,
        "compare this member with the others: version, CPU, memory, and the systems that it calls.",
    ),
    "slow_host": (_SLOW_HOST, "check CPU, memory, disk and network of this host."),
    "under_provisioned": (
        "too much input. The lag of every member grows.",
        "make the processing faster, or add members. More members than partitions do not help.",
    ),
    "open_transaction": ("an open transaction of a producer blocks every late partition.", _END_TRANSACTION),
}
"""For each cause of lag: the cause in words, and what to do."""


def lag_cause(*, with_action: bool) -> str:
    """Return a template that describes the cause of the lag.

    The input `.` of the template is the result of a query for the cause.
    """
    parts = (
        f'if eq .Labels.cause "{name}" }}}} Cause of the lag: {cause}'
        + (f" What to do: {action}" if with_action else "")
        for name, (cause, action) in _LAG_CAUSES.items()
    )
    return "{{ with first . }}{{ " + "{{ else ".join(parts) + "{{ end }}{{ end }}"


LAG_CAUSE: Final = known_with("group_lag_cause_info", 'cause!="unknown"', lag_cause(with_action=False))
"""The cause of the lag, if it is known."""

WORST_PARTITION: Final = known(
    "rebalance_monitor_group_worst_partition_info@",
    "{{ with first . }} Partition {{ .Labels.partition }} of topic {{ .Labels.topic }} has the largest lag in seconds."
    "{{ with .Labels.client_id }} Its owner is client {{ . }}{{ end }}{{ with .Labels.client_host }} on {{ . }}"
    "{{ end }}{{ with .Labels.group_instance_id }} (instance {{ . }}){{ end }}{{ if .Labels.client_id }}.{{ end }}"
    "{{ end }}",
)
