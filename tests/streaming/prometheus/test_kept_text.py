"""Text that is kept between scrapes never outlives what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import assignor_named
from assignors.coordinator import coordinator_partition
from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.fairness.imbalance import LAG, Imbalance
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import GroupEvent
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.prometheus.metric_selection import MetricSelection
from streaming.prometheus.metrics import Exporter
from streaming.signals import SIGNALS
from streaming.signals.monitor import RESIDENT_MEMORY_BYTES
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import WorkShares
from tests.examples import EXAMPLES
from tests.streaming.groups import emptied, member, sampled, tombstoned, written
from tests.streaming.http.answers import answer
from tests.streaming.prometheus.test_metrics import NOW_MS, PARTITIONS, STALE_AFTER_MS, monitor_state_of, sample_of

GROUPS = ("g", "h")
STRATEGIES = [assignor_named(name) for name in ("range", "sticky")]
SHOWN = MetricSelection(frozenset(SIGNALS) - {RESIDENT_MEMORY_BYTES.name})
"""The memory of the processes is another at each scrape."""

Change = Callable[[MonitorState, str, int], None]
Scraped = Callable[[], str]


def record_of(monitor_state: MonitorState, group_id: str, number: int, event: GroupEvent) -> None:
    """Let a record of the group be read."""
    known = monitor_state.view().groups.get(group_id) or GroupState(GroupSnapshot(group_id))
    update = apply_batch(known, [event, sampled(NOW_MS + number, orders=3)], STRATEGIES)
    monitor_state.put_batch([update.record], [])


def rebalanced(monitor_state: MonitorState, group_id: str, number: int) -> None:
    held = [member("m", {"orders": range(number % 4)}), member("n", {"orders": range(number % 4, 3)})]
    record_of(monitor_state, group_id, number, written(number, number, held))


def became_empty(monitor_state: MonitorState, group_id: str, number: int) -> None:
    record_of(monitor_state, group_id, number, emptied(number, number))


def deleted(monitor_state: MonitorState, group_id: str, number: int) -> None:
    record_of(monitor_state, group_id, number, tombstoned(number))


def forgotten(monitor_state: MonitorState, group_id: str, _: int) -> None:
    monitor_state.put_batch([], [], forgotten=[group_id])


def committed(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """Another sample, in which lag is another, too."""
    lagging = monitor_state_of([], {(group_id, "orders", 0): number, (group_id, "gone", 1): 5}).view()
    assert lagging.sample is not None
    monitor_state.put_sample(replace(lagging.sample, brokers=number), lagging.lag, monitor_state.view().listing)


def blocked(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """An open transaction begins, or is over."""
    held = [coordinator_partition(group_id, PARTITIONS)] if number % 2 else []
    monitor_state.put_sample(sample_of(held=held), monitor_state.view().lag, monitor_state.view().listing)


def stale(monitor_state: MonitorState, _: str, number: int) -> None:
    """No broker answers for a while, or they do again."""
    age_ms = (number % 2) * (STALE_AFTER_MS + 1)
    monitor_state.put_sample(sample_of(NOW_MS - age_ms), monitor_state.view().lag, monitor_state.view().listing)


def listed(monitor_state: MonitorState, group_id: str, number: int) -> None:
    state = "PreparingRebalance" if number % 2 else "Stable"
    listing = GroupListing(NOW_MS, {group_id: ListedGroup("classic", "consumer", state, 1)})
    monitor_state.put_sample(monitor_state.view().sample or sample_of(), monitor_state.view().lag, listing)


def measured(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """Lag is shared otherwise, of the assignment that stands or of one that did."""
    record = monitor_state.view().groups.get(group_id)
    if record is not None and record.evaluation is not None:
        lag = Imbalance(measure=LAG, scope="member", score=number % 100, max_to_mean_ratio=1 + number / 7)
        monitor_state.put_work({group_id: WorkShares(record.evaluation.position, (lag,))})


def gap_closed(monitor_state: MonitorState, group_id: str, number: int) -> None:
    totals = GapTotals((number, 0, 0, 1, 0, 0), 700 * number) if number % 3 else None
    monitor_state.put_gap_totals([GapsClosed((), {group_id: totals})])


def condition_changed(monitor_state: MonitorState, group_id: str, number: int) -> None:
    monitor_state.put_conditions({group_id: (Condition("rebalance_storm", 5, ""),)} if number % 2 else {})


def ready_or_not(monitor_state: MonitorState, _: str, number: int) -> None:
    monitor_state.put_health(ready=not number % 2)


CHANGES: list[Change] = [
    rebalanced,
    became_empty,
    deleted,
    forgotten,
    committed,
    blocked,
    stale,
    listed,
    measured,
    gap_closed,
    condition_changed,
    ready_or_not,
]


def scraper(monitor_state: MonitorState) -> Scraped:
    """Return who scrapes it; who does so again and again keeps text."""
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    return lambda: answer(exporter)


STEPS = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(GROUPS), st.integers(1, 30)), max_size=12)


@settings(max_examples=EXAMPLES // 2)  # each has up to twelve steps, and two whole scrapes after each step
@given(STEPS)
def test_who_has_scraped_before_sees_what_a_newcomer_sees(steps: list[tuple[Change, str, int]]) -> None:
    """Rule: never a last value for the present. Whatever changes, in whatever order, also back to what it was."""
    monitor_state = monitor_state_of([])
    often = scraper(monitor_state)
    for change, group_id, number in steps:
        change(monitor_state, group_id, number)
        assert often() == scraper(monitor_state)()


def test_each_of_the_changes_is_one_that_a_scrape_shows() -> None:
    """The law above says something of each of them only if there is something to see."""
    for change in CHANGES:
        monitor_state = monitor_state_of([])
        for group_id in GROUPS:
            rebalanced(monitor_state, group_id, 2)
        before = scraper(monitor_state)()
        change(monitor_state, "g", 3 if change is not gap_closed else 4)
        assert scraper(monitor_state)() != before, change.__name__


def test_text_of_a_group_that_stays_as_it_is_is_written_once() -> None:
    """What it is kept for: of ten thousand groups few change between two scrapes."""
    monitor_state = monitor_state_of([])
    for group_id in GROUPS:
        rebalanced(monitor_state, group_id, 2)
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    [cluster] = exporter._clusters
    kept = []
    for change in (committed, rebalanced):
        answer(exporter)
        kept.append(dict(cluster._groups._cache))
        change(monitor_state, "g", 3)
    answer(exporter)
    after = cluster._groups._cache
    assert kept[0]["h"].texts is kept[1]["h"].texts is after["h"].texts, "also over another sample"
    assert kept[0]["g"].texts is kept[1]["g"].texts is not after["g"].texts


def test_what_is_kept_beside_a_text_is_what_is_known_now() -> None:
    """A record restored or read again is another object: one more of it for each group is memory for nothing."""
    monitor_state = monitor_state_of([])
    rebalanced(monitor_state, "g", 2)
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    answer(exporter)
    [cluster] = exporter._clusters
    text = cluster._groups._cache["g"].texts
    again = deepcopy(monitor_state.view().groups["g"])
    monitor_state.put_batch([again], [])
    answer(exporter)
    kept = cluster._groups._cache["g"]
    assert kept.parts[-1].snapshot is again.snapshot
    assert kept.texts is text, "equal parts, the same text"
