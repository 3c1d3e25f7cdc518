"""Write PromQL queries as text. A `Scope` selects the series that a dashboard shows.

PromQL's `increase` does not count the event that creates the series of a counter. `Scope.increase` counts this event if
a second series already existed at the start of the window (DESIGN.md). The second series is `EMPTY_TRANSITIONS` for a
group, and `READY` for a monitor.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.signals import HISTOGRAM, Signal, exported_names
from streaming.signals.groups import GROUP_INFO, GROUP_LIMIT
from streaming.signals.lag import GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS, GROUP_SECONDS_UNTIL_LOST
from streaming.signals.monitor import DISK_FREE_RATIO, READY, RECORDS_SKIPPED
from streaming.signals.rebalances import EMPTY_TRANSITIONS, REBALANCES

_SMALLEST_IS_WORST = frozenset(
    signal.name for signal in (GROUP_SECONDS_UNTIL_LOST, GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS, DISK_FREE_RATIO)
)


@dataclass(frozen=True)
class Scope:
    """The label matchers that select the series of a dashboard.

    `only` is an optional selector of groups. If `only` is set, `series` and `increase` return only the selected groups.

    >>> CLUSTERS.selector(EMPTY_TRANSITIONS, 'group="a"')
    'rebalance_monitor_empty_transitions_total{cluster=~"$cluster", group="a"}'
    """

    matchers: str
    only: str = ""

    def selector(self, signal: Signal, *matchers: str) -> str:
        """Return the selector of a signal's series. For a histogram, the selector selects the buckets."""
        return f"{exported_names(signal)[0]}{{{', '.join((self.matchers, *matchers))}}}"

    def series(self, signal: Signal, *matchers: str) -> str:
        """Return a query with one value for each combination of the labels that the signal defines.

        If two monitors watch one cluster, the query returns the worse value.

        >>> ONE_GROUP.series(EMPTY_TRANSITIONS)
        'max by (cluster, group) (rebalance_monitor_empty_transitions_total{cluster="$cluster", group="$group"})'
        """
        return self.series_by(_own_labels(signal), signal, *matchers)

    def series_by(self, labels: str, signal: Signal, *matchers: str) -> str:
        """Return a query with one value for each combination of `labels`."""
        worst = "min" if signal.name in _SMALLEST_IS_WORST else "max"
        return f"{worst} by ({labels}) ({self._restrict(self.selector(signal, *matchers))})"

    def series_before(self, signal: Signal, window: str, *matchers: str) -> str:
        """Return a query for the values of `series` at the start of `window`. The window ends now."""
        then = f"{self.selector(signal, *matchers)} offset {window}"
        return f"max by ({_own_labels(signal)}) ({self._restrict(then)})"

    def limit(self, name: str) -> str:
        """Return a query for a limit of each group, for example `max_lag_seconds`."""
        return self.series_by("cluster, group", GROUP_LIMIT, f'limit="{name}"')

    def increase(self, counter: Signal, window: str, *matchers: str) -> str:
        """Return a query for the exact increase of a counter within the window that ends now.

        If the counter had no series at the start of the window, but the second series existed, the start value is 0.
        `REBALANCES` needs no second series, because each group has a series of `REBALANCES`, even if the value is 0.
        """
        return f"clamp_min({self._difference(counter, window, *matchers)}, 0)"

    def increase_in_range(self, counter: Signal, *matchers: str) -> str:
        """Return a query for the increase within the dashboard's time range.

        The query uses PromQL's `increase` in two cases: Prometheus has no data for the start of the time range, or the
        counter started again at 0. Exception: `RECORDS_SKIPPED` starts again only if the monitor rebuilds its
        checkpoint. Then the monitor reads old records again, so the increase from 0 does not count new events.
        """
        labels, selected = _own_labels(counter), f"{self.selector(counter, *matchers)}[$__range]"
        seen = f"max by ({labels}) ({self._restrict(f'round(increase({selected}))')})"
        if counter is RECORDS_SKIPPED:
            return f"({self.increase(counter, '$__range', *matchers)} or {seen})"
        reset = f"max by ({labels}) ({self._restrict(f'resets({selected})')}) > 0"
        return f"({self._difference(counter, '$__range', *matchers)} >= 0 unless {reset} or {seen})"

    def rate(self, counter: Signal) -> str:
        """Return a query for the rate of a counter per second, with one value for each combination of its labels."""
        rate = f"rate({self.selector(counter)}[$__rate_interval])"
        return f"max by ({_own_labels(counter)}) ({self._restrict(rate)})"

    def _difference(self, counter: Signal, window: str, *matchers: str) -> str:
        total, then = self.series(counter, *matchers), self.series_before(counter, window, *matchers)
        if counter is REBALANCES:
            return f"{total} - {then}"
        labels, known = ("cluster, group", EMPTY_TRANSITIONS) if "group" in counter.labels else ("cluster", READY)
        new_series = f"{total} * 0 and on ({labels}) {self.selector(known)} offset {window}"
        return f"{total} - ({then} or {new_series})"

    def _restrict(self, expression: str) -> str:
        return for_same_groups(expression, self.only) if self.only else expression


def _own_labels(signal: Signal) -> str:
    return ", ".join((*signal.labels, "le") if signal.kind == HISTOGRAM else signal.labels)


CLUSTERS = Scope('cluster=~"$cluster"')
ONE_CLUSTER = Scope('cluster="$cluster"')
ONE_GROUP = Scope('cluster="$cluster", group="$group"')
ONE_TOPIC = Scope('cluster="$cluster", topic="$topic"')
FLEET = Scope('cluster=~"$cluster", group=~"$group"', only=CLUSTERS.selector(GROUP_INFO, 'team=~"$team"'))
"""All groups of the selected teams. Only `GROUP_INFO` has the label `team`."""


def for_same_groups(expression: str, selected: str) -> str:
    """Return a query for the values of an expression, but only for groups in the result of `selected`.

    >>> for_same_groups("a", "topk($top, b)")
    'a and on (cluster, group) topk($top, b)'
    """
    return f"{expression} and on (cluster, group) {selected}"


def repeat_for_rows(expression: str, labels: str, rows: str) -> str:
    """Return a query that repeats the values of `expression` for the rows of the query `rows`.

    Each row gets the value with the same `labels`.

    >>> repeat_for_rows("a", "group", "b")
    '0 * b + on (group) group_left () a'
    """
    return f"0 * {rows} + on ({labels}) group_left () {expression}"


def count_or_zero(matching: str, known: str) -> str:
    """Return a query for the number of series in `matching`. If only `known` has series, the number is 0.

    >>> count_or_zero("m > 0", "m")
    'count(m > 0) or 0 * count(m)'
    """
    return f"count({matching}) or 0 * count({known})"
