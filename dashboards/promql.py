"""Queries as text. A scope says whose series are meant: those the variables of a dashboard select.

Counters of the monitor are totals kept for as long as a group lives, and a cause's first rebalance is its series' first
sample: `increase` knows nothing before that and would leave it out. `Scope.happened` counts it: every group has its
counter of all rebalances from its first record on, and every monitor says whether it is ready.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.signals import HISTOGRAM, Signal, exported_names
from streaming.signals.monitor import READY
from streaming.signals.rebalances import REBALANCES


@dataclass(frozen=True)
class Scope:
    """Whose series a dashboard shows, as label matchers.

    >>> CLUSTERS.selector(REBALANCES, 'group="a"')
    'rebalance_monitor_rebalances_total{cluster=~"$cluster", group="a"}'
    """

    matchers: str

    def selector(self, signal: Signal, *matchers: str) -> str:
        """Select a signal's series, of a histogram its buckets, by further matchers if need be."""
        return f"{exported_names(signal)[0]}{{{', '.join((self.matchers, *matchers))}}}"

    def series(self, signal: Signal, *matchers: str) -> str:
        """One value for each combination of the signal's own labels, whatever else a scrape has added (rule 4).

        >>> ONE_GROUP.series(REBALANCES)
        'max by (cluster, group) (rebalance_monitor_rebalances_total{cluster="$cluster", group="$group"})'
        """
        return f"max by ({_own_labels(signal)}) ({self.selector(signal, *matchers)})"

    def series_before(self, signal: Signal, window: str, *matchers: str) -> str:
        """The same, as it was when the window that ends now began."""
        return f"max by ({_own_labels(signal)}) ({self.selector(signal, *matchers)} offset {window})"

    def increase(self, counter: Signal, window: str, *matchers: str) -> str:
        """By how much a counter grew within the window that ends now: exact, and never below 0.

        A series that was not there at the window's start began at 0, if its group, or its monitor, was known then.
        """
        whose, known = ("cluster, group", REBALANCES) if "group" in counter.labels else ("cluster", READY)
        total, then = self.series(counter, *matchers), self.series_before(counter, window, *matchers)
        began_since = f"{total} * 0 and on ({whose}) {self.selector(known)} offset {window}"
        return f"clamp_min({total} - ({then} or {began_since}), 0)"

    def increase_in_range(self, counter: Signal, *matchers: str) -> str:
        """The same over the dashboard's time range; where Prometheus was not there at its start, what it saw since."""
        seen_since = f"sum by ({_own_labels(counter)}) (round(increase({self.selector(counter, *matchers)}[$__range])))"
        return f"({self.increase(counter, '$__range', *matchers)} or {seen_since})"


def _own_labels(signal: Signal) -> str:
    return ", ".join((*signal.labels, "le") if signal.kind == HISTOGRAM else signal.labels)


FLEET = Scope('cluster=~"$cluster", group=~"$group"')
CLUSTERS = Scope('cluster=~"$cluster"')
ONE_GROUP = Scope('cluster="$cluster", group="$group"')


def top_k(expression: str) -> str:
    """The `$top` largest, as a query of its own or to select others' rows by.

    >>> top_k("m > 0")
    'topk($top, m > 0)'
    """
    return f"topk($top, {expression})"


def for_same_groups(expression: str, ranked_table: str) -> str:
    """What an expression says of the groups that another one ranks.

    >>> for_same_groups("a", "topk($top, b)")
    'a and on (cluster, group) topk($top, b)'
    """
    return f"{expression} and on (cluster, group) {ranked_table}"


def repeat_for_rows(expression: str, labels: str, rows: str) -> str:
    """A value that is told of `labels`, for each of the rows that have these labels and more.

    >>> repeat_for_rows("a", "group", "b")
    '0 * b + on (group) group_left () a'
    """
    return f"0 * {rows} + on ({labels}) group_left () {expression}"


def sum_by(labels: str, expression: str) -> str:
    """Add up what agrees in these labels.

    >>> sum_by("cause", "m")
    'sum by (cause) (m)'
    """
    return f"sum by ({labels}) ({expression})"


def count_or_zero(matching: str, known: str) -> str:
    """How many there are; 0 only where it is known that there are none, which `known` having a series tells.

    >>> count_or_zero("m > 0", "m")
    'count(m > 0) or 0 * count(m)'
    """
    return f"count({matching}) or 0 * count({known})"
