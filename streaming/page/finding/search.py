"""Selects and sorts groups by the query parameters of a request.

1. `q` selects the groups whose id contains the value. `topic` selects the groups with a topic whose name contains the
   value. `host` selects the groups with a client host whose name contains the value. The comparison ignores case.
2. `trouble`, `state`, `strategy` and `team` select the groups that have exactly the given value.
3. A group must match all given parameters. An empty parameter matches every group.
4. `sort` is a key of SORTS. Names are sorted alphabetically. Numbers are sorted from the largest to the smallest. A
   group with an unknown or empty value comes last. Groups with equal values are sorted by trouble. Without a valid
   `sort`, the worst group comes first.
5. If a group has several topics or hosts, `sort` uses the alphabetically first name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.evaluation.report import GroupReport
from streaming.page.addresses import Address

TEXTS = ("q", "topic", "host")
VALUES = ("trouble", "state", "strategy", "team")
FILTERS = (*TEXTS, *VALUES)
BY_TROUBLE = "trouble"
WITHOUT_PAST = ("topic", "host", "team")
"""Parameters and sort keys that a list about the past cannot use, because past reports do not contain the values."""

Predicate = Callable[[GroupReport], bool]
Choices = Mapping[str, Counter[str]]
"""The number of groups with each value, for each parameter of rule 2."""


@dataclass(frozen=True, slots=True)
class Search:
    """The filters and the sort key of a request. `filters` maps parameters to values, and contains no empty value."""

    filters: Mapping[str, str] = field(default_factory=dict)
    sort: str = BY_TROUBLE

    def predicate(self) -> Predicate:
        """Return a function that returns True if a group matches all filters (rules 1 to 3)."""
        predicates = [_predicate(name, value) for name, value in self.filters.items()]
        return lambda group: all(matches(group) for matches in predicates)


def search_of(address: Address) -> Search:
    """Return the filters and the sort key of a request.

    >>> search_of(Address("/", "q=&team=payments&sort=lag"))
    Search(filters={'team': 'payments'}, sort='lag')
    """
    filters = {name: value for name in FILTERS if (value := address.argument(name))}
    sort = address.argument("sort")
    return Search(filters, sort if sort in SORTS else BY_TROUBLE)


def found_names(group: GroupReport, kind: str, text: str) -> list[str]:
    """Return the topics or the client hosts (`kind`) of a group, sorted. Names that contain `text` come first."""
    folded = text.casefold()
    return sorted(_VALUES[kind](group), key=lambda name: (folded not in name.casefold(), name))


def count_values(groups: Iterable[GroupReport]) -> Choices:
    """For each filter of rule 2, map each value to the number of groups with this value."""
    counts: Choices = {name: Counter() for name in VALUES}
    for group in groups:
        for name in VALUES:
            counts[name].update(value for value in _VALUES[name](group) if value)
    return counts


def _predicate(name: str, wanted: str) -> Predicate:
    get = _VALUES[name]
    if name in VALUES:
        return lambda group: wanted in get(group)
    folded = wanted.casefold()
    return lambda group: any(folded in value.casefold() for value in get(group))


_VALUES: Mapping[str, Callable[[GroupReport], Iterable[str]]] = {
    "q": lambda group: (group.group_id,),
    "topic": lambda group: group.topics,
    "host": lambda group: group.members.hosts,
    "trouble": lambda group: {trouble.word for trouble in group.troubles},
    "state": lambda group: (group.membership.state,),
    "strategy": lambda group: (group.membership.protocol or "",),
    "team": lambda group: (group.limits.team,),
}
"""The values of a group for each filter, for example all topics of the group."""


def _by_first_name(name: str) -> Callable[[GroupReport], tuple[bool, str]]:
    def key(group: GroupReport) -> tuple[bool, str]:
        first = min(_VALUES[name](group), default="")
        return not first, first.casefold()

    return key


def _largest_first(get: Callable[[GroupReport], float | None]) -> Callable[[GroupReport], float]:
    def key(group: GroupReport) -> float:
        value = get(group)
        return 1.0 if value is None else -value

    return key


SORTS: Mapping[str, tuple[str, Callable[[GroupReport], Any] | None]] = {
    BY_TROUBLE: ("worst trouble", None),
    "name": ("group", lambda group: group.group_id.casefold()),
    "state": ("state", _by_first_name("state")),
    "strategy": ("strategy", _by_first_name("strategy")),
    "team": ("team", _by_first_name("team")),
    "topic": ("topic", _by_first_name("topic")),
    "host": ("host", _by_first_name("host")),
    "members": ("members", _largest_first(lambda group: group.membership.members)),
    "lag": ("lag", _largest_first(lambda group: group.lag.records)),
    "behind": ("behind", _largest_first(lambda group: group.lag.seconds)),
}
"""The sort keys. The value has the name on the page, and a function that returns the sort value of a group.

The function is None for `trouble`, because the groups are already sorted by trouble.
"""
