"""Write PromQL queries as text. A scope contains label matchers that use the variables of a dashboard.

The monitor's counters are totals over the lifetime of a group. A counter per cause starts with the first rebalance that
has this cause. PromQL's `increase` ignores the first value of a series, but `Scope.increase` counts this value.
`Scope.increase` uses a second series that exists earlier. For counters of a group, this series is the counter of all
rebalances, which exists since the first record of the group. For counters of the monitor, this series shows whether the
monitor is ready.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.signals import HISTOGRAM, Signal, exported_names
from streaming.signals.monitor import READY
from streaming.signals.rebalances import REBALANCES


@dataclass(frozen=True)
class Scope:
    """The label matchers that select the series of a dashboard.

    >>> CLUSTERS.selector(REBALANCES, 'group="a"')
    'rebalance_monitor_rebalances_total{cluster=~"$cluster", group="a"}'
    """

    matchers: str

    def selector(self, signal: Signal, *matchers: str) -> str:
        """Return the selector of a signal's series. For a histogram, the selector selects its buckets.

        Further matchers are optional.
        """
        return f"{exported_names(signal)[0]}{{{', '.join((self.matchers, *matchers))}}}"

    def series(self, signal: Signal, *matchers: str) -> str:
        """Return a query with one value per combination of the signal's own labels (rule 4).

        >>> ONE_GROUP.series(REBALANCES)
        'max by (cluster, group) (rebalance_monitor_rebalances_total{cluster="$cluster", group="$group"})'
        """
        return f"max by ({_own_labels(signal)}) ({self.selector(signal, *matchers)})"

    def series_before(self, signal: Signal, window: str, *matchers: str) -> str:
        """Return the query of `series` for the time at which the window starts. The window ends now."""
        return f"max by ({_own_labels(signal)}) ({self.selector(signal, *matchers)} offset {window})"

    def increase(self, counter: Signal, window: str, *matchers: str) -> str:
        """Return a query for the exact increase of a counter within the window that ends now.

        The increase is never negative. If the series did not exist at the start of the window, its start value is 0.
        This rule applies only if the group or the monitor already had a different series at that time.
        """
        labels, known = ("cluster, group", REBALANCES) if "group" in counter.labels else ("cluster", READY)
        total, then = self.series(counter, *matchers), self.series_before(counter, window, *matchers)
        new_series = f"{total} * 0 and on ({labels}) {self.selector(known)} offset {window}"
        return f"clamp_min({total} - ({then} or {new_series}), 0)"

    def increase_in_range(self, counter: Signal, *matchers: str) -> str:
        """Return a query for the increase within the dashboard's time range.

        If Prometheus has no data for the start of the time range, the query uses PromQL's `increase` of the available
        values.
        """
        seen_since = f"sum by ({_own_labels(counter)}) (round(increase({self.selector(counter, *matchers)}[$__range])))"
        return f"({self.increase(counter, '$__range', *matchers)} or {seen_since})"


def _own_labels(signal: Signal) -> str:
    return ", ".join((*signal.labels, "le") if signal.kind == HISTOGRAM else signal.labels)


FLEET = Scope('cluster=~"$cluster", group=~"$group"')
CLUSTERS = Scope('cluster=~"$cluster"')
ONE_GROUP = Scope('cluster="$cluster", group="$group"')


def top_k(expression: str) -> str:
    """Return a query for the `$top` largest values. Other queries can use the result to select rows.

    >>> top_k("m > 0")
    'topk($top, m > 0)'
    """
    return f"topk($top, {expression})"


def for_same_groups(expression: str, selected: str) -> str:
    """Return a query for the values of an expression, limited to the groups in the result of `selected`.

    >>> for_same_groups("a", "topk($top, b)")
    'a and on (cluster, group) topk($top, b)'
    """
    return f"{expression} and on (cluster, group) {selected}"


def repeat_for_rows(expression: str, labels: str, rows: str) -> str:
    """Return a query that repeats a value for each row of `rows` with the same `labels`. Rows can have more labels.

    >>> repeat_for_rows("a", "group", "b")
    '0 * b + on (group) group_left () a'
    """
    return f"0 * {rows} + on ({labels}) group_left () {expression}"


def sum_by(labels: str, expression: str) -> str:
    """Return a query with one sum for each combination of these labels.

    >>> sum_by("cause", "m")
    'sum by (cause) (m)'
    """
    return f"sum by ({labels}) ({expression})"


def count_or_zero(matching: str, known: str) -> str:
    """Return a query for the number of series in `matching`. The result can be 0 only if `known` has a series.

    >>> count_or_zero("m > 0", "m")
    'count(m > 0) or 0 * count(m)'
    """
    return f"count({matching}) or 0 * count({known})"
