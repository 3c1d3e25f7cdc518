"""What numbers and labels are called, and which of five colours they have: fine, watch it, act, unknown, neither.

Label values that a panel shows as a word are coded as numbers by its query: timelines have words for numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard

from dashboards.promql import Scope
from streaming.signals import Signal
from streaming.signals.rebalances import GROUP_CONDITION

FINE, WATCH, ACT, UNKNOWN, NEITHER = "green", "yellow", "red", "#8e8e8e", "blue"

Steps = Sequence[tuple[float, str]]
"""From which value on which colour holds; below the first it is FINE, or ACT where the last is FINE."""

ANY: Steps = ((1, ACT),)
SOME: Steps = ((1, WATCH),)
SECONDS_BEHIND: Steps = ((60, WATCH), (600, ACT))
STORM: Steps = ((5, WATCH), (20, ACT))
SCORE: Steps = ((50, WATCH), (90, FINE))

SINCE = "dateTimeFromNow"
"""Grafana's unit for a time in milliseconds since 1970, shown as how long ago that was."""


@dataclass(frozen=True)
class Word:
    """One value of a label, the number that stands for it, and its colour."""

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
_CONDITIONS = GROUP_CONDITION.label_values["condition"]
CONDITIONS = _words(61, {condition: NEITHER if condition == "rolling_restart" else ACT for condition in _CONDITIONS})
BOUNDS = _words(81, {"exact": FINE, "at least": WATCH})
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
"""Why a group rebalanced: what nobody can explain is red, comings and goings are blue, changes orange."""


def code_query(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    """The number that stands for the value of a label of a signal that is 1 for it.

    >>> from streaming.signals.lag import GROUP_STATUS
    >>> code_query(Scope('group="g"'), GROUP_STATUS, "status", STATUSES[:1])
    'max(21 * rebalance_monitor_group_status{group="g", status="OK"})'
    """
    return f"max({_codes(scope, signal, label, words)})"


def code_query_by_label(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    """The same where several values can hold at once: a series for each."""
    return f"max by ({label}) ({_codes(scope, signal, label, words)})"


def _codes(scope: Scope, signal: Signal, label: str, words: Sequence[Word]) -> str:
    return " or ".join(f"{word.code} * {scope.selector(signal, _is(label, word.value))}" for word in words)


def _is(label: str, value: str) -> str:
    return f'{label}="{value}"'


def code_mappings(*of_labels: Sequence[Word]) -> list[dashboard.ValueMapping]:
    """Words and colours for such numbers."""
    return [
        value_mapping({str(word.code): (in_words(word.value), word.color) for words in of_labels for word in words})
    ]


def label_mappings(words: Sequence[Word]) -> list[dashboard.ValueMapping]:
    """Colours for a column that holds the label's value itself."""
    return [value_mapping({word.value: (in_words(word.value), word.color) for word in words})]


def in_words(value: str) -> str:
    """A label's value as people write it.

    >>> in_words("rebalance_storm")
    'rebalance storm'
    """
    return value.replace("_", " ")


def value_mapping(options: Mapping[str, tuple[str, str]]) -> dashboard.ValueMap:
    """A text and a colour for each value."""
    return dashboard.ValueMap(
        {
            value: dashboard.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(options.items())
        }
    )


NONE = [value_mapping({"0": ("none", FINE)})]
"""Zero in a word, for figures of which more than none is a trouble."""


def thresholds(steps: Steps) -> list[dashboard.Threshold]:
    """Grafana's steps; the first has no value, which is minus infinity. Where less is worse, it is ACT."""
    below = ACT if steps and steps[-1][1] == FINE else FINE
    return [dashboard.Threshold(None, below), *(dashboard.Threshold(value, color) for value, color in steps)]
