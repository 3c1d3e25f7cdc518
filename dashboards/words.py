"""Define words and colours for numbers and label values.

The five colours mean fine, watch, act, unknown and neutral (`NEITHER`).

A Grafana timeline can show words only for numbers. So the query of a timeline converts each label value to a number (a
code).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard

from dashboards.promql import Scope
from streaming.signals import Signal, lag, rebalances

FINE, WATCH, ACT, UNKNOWN, NEITHER = "green", "yellow", "red", "#8e8e8e", "blue"

Steps = Sequence[tuple[float, str]]
"""Thresholds with colours. A colour applies to values from its threshold up to the next threshold.

Values below the first threshold have the colour FINE, or ACT if the colour of the last threshold is FINE.
"""

ANY: Steps = ((1, ACT),)
SOME: Steps = ((1, WATCH),)
SECONDS_BEHIND: Steps = ((60, WATCH), (600, ACT))
STORM: Steps = ((5, WATCH), (20, ACT))
SECONDS_LEFT: Steps = ((3600, WATCH), (86_400, FINE))

SINCE = "dateTimeFromNow"
"""Grafana's unit for a time in milliseconds since 1970. Grafana shows such a time relative to now."""


@dataclass(frozen=True)
class Word:
    """A label value, and the code and colour of this value."""

    value: str
    code: int
    color: str


def _words(first_code: int, colors: Mapping[str, str]) -> tuple[Word, ...]:
    return tuple(Word(value, first_code + index, color) for index, (value, color) in enumerate(colors.items()))


STATES = _words(
    1,
    {
        "Stable": FINE,
        "Empty": NEITHER,
        "PreparingRebalance": WATCH,
        "CompletingRebalance": WATCH,
        "Assigning": WATCH,
        "Reconciling": WATCH,
        "NotReady": WATCH,
        "Dead": ACT,
        "Unknown": UNKNOWN,
    },
)
STATUSES = _words(21, {"OK": FINE, "WARN": WATCH, "STOP": ACT, "STALL": ACT, "REWIND": ACT})
VERDICTS = _words(
    41,
    {
        "match": FINE,
        "equivalent": FINE,
        "drift": ACT,
        "differs_from_java": WATCH,
        "rebalancing": WATCH,
        "withheld": NEITHER,
        "not_evaluated": NEITHER,
        "unknown": UNKNOWN,
    },
)
_CONDITIONS = rebalances.GROUP_CONDITION.label_values["condition"]
CONDITIONS = _words(61, {condition: NEITHER if condition == "rolling_restart" else ACT for condition in _CONDITIONS})
AT_LEAST = Word("at least", 81, WATCH)
LAG_LIMITS = _words(91, {"below the limit": FINE, "above the limit": WATCH, "above the critical limit": ACT})
SEVERITIES = (Word("critical", 3, ACT), Word("warning", 2, WATCH), Word("info", 1, NEITHER))
CAUSES: Mapping[str, str] = {
    "unexplained": ACT,
    "unknown": UNKNOWN,
    "member_gone": "dark-blue",
    "member_joined": "light-blue",
    "strategy_changed": "dark-orange",
    "subscription_changed": "orange",
    "metadata_changed": "light-orange",
    "cooperative_followup": "super-light-blue",
}
"""Colours of the causes of a rebalance.

Red: the cause is unexplained. Blue: a member joined or left. Orange: a strategy, a subscription or a topic changed.
"""


def code_query(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    """Return a query for the code of the current label value: the value for which the signal is 1.

    >>> from streaming.signals.lag import GROUP_STATUS
    >>> code_query(Scope('group="g"'), GROUP_STATUS, "status", STATUSES[:1])
    'max(21 * rebalance_monitor_group_status{group="g", status="OK"})'
    """
    return f"max({_codes(scope, signal, label, words)})"


def code_query_by_label(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    """Return a query with one series for each value of `label`. A label can have several values at the same time."""
    return f"max by ({label}) ({_codes(scope, signal, label, words)})"


def _codes(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    selectors = ((word.code, scope.selector(signal, f'{label}="{word.value}"')) for word in words)
    return " or ".join(f"{code} * {selector}" for code, selector in selectors)


def code_mappings(*of_labels: Sequence[Word]) -> list[dashboard.ValueMapping]:
    """Return the mapping from codes to words and colours."""
    return [
        value_mapping({str(word.code): (in_words(word.value), word.color) for words in of_labels for word in words})
    ]


def label_mappings(words: Sequence[Word]) -> list[dashboard.ValueMapping]:
    """Return the mapping from label values to words and colours."""
    return [value_mapping({word.value: (in_words(word.value), word.color) for word in words})]


def in_words(value: str) -> str:
    """Return a label's value with spaces instead of underscores.

    >>> in_words("rebalance_storm")
    'rebalance storm'
    """
    return value.replace("_", " ")


def value_mapping(options: Mapping[str, tuple[str, str]]) -> dashboard.ValueMap:
    """Return a Grafana mapping from values to texts and colours."""
    return dashboard.ValueMap(
        {
            value: dashboard.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(options.items())
        }
    )


NONE = [value_mapping({"0": ("none", FINE)})]
"""Mapping that shows 0 as the word "none"."""


_NEVER = "-1"
CATCH_UP = [value_mapping({"0": ("no lag", FINE), _NEVER: ("not at this rate", WATCH)})]
"""Maps each value of `catch_up_query` that is not a time to a text."""


def catch_up_query(scope: Scope) -> str:
    """Return a query for the time in seconds that each group needs to catch up.

    The value is 0 if the group has no lag. The value is -1 if the group has lag and both rates are known, but there is
    no estimate of the time. In these two cases, `GROUP_CATCH_UP_SECONDS` has no series. If the lag or a necessary rate
    is unknown, the group has no value.
    """
    unread = scope.series(lag.GROUP_LAG)
    produced, consumed = map(
        scope.series, (lag.GROUP_PRODUCED_RECORDS_PER_SECOND, lag.GROUP_CONSUMED_RECORDS_PER_SECOND)
    )
    lag_stays = f"{_NEVER} + 0 * ({unread} > 0 and {produced} and {consumed})"
    return f"({scope.series(lag.GROUP_CATCH_UP_SECONDS)} or 0 * ({unread} == 0) or {lag_stays})"


def thresholds(steps: Steps) -> list[dashboard.Threshold]:
    """Return Grafana's thresholds. The first threshold sets the colour for all values below the thresholds in `steps`.

    If the last colour in `steps` is FINE, the first colour is ACT. Otherwise, the first colour is FINE.
    """
    below = ACT if steps and steps[-1][1] == FINE else FINE
    return [dashboard.Threshold(None, below), *(dashboard.Threshold(value, color) for value, color in steps)]
