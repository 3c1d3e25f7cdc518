"""Tests that text which is cached between scrapes is never older than the values that it shows."""

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
from streaming.prometheus.metric_selection import ExportOptions, MetricSelection
from streaming.prometheus.metrics import Exporter
from streaming.signals.monitor import RESIDENT_MEMORY_BYTES
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import WorkShares
from tests.streaming.groups import emptied, member, sampled, tombstoned, written
from tests.streaming.http.answers import answer
from tests.streaming.prometheus.test_metrics import NOW_MS, PARTITIONS, STALE_AFTER_MS, monitor_state_of, sample_of

GROUPS = ("g", "h")
STRATEGIES = [assignor_named(name) for name in ("range", "sticky")]
WITHOUT_MEMORY = frozenset({RESIDENT_MEMORY_BYTES.name})
"""The memory changes between scrapes."""
EVERYTHING = ExportOptions(MetricSelection(exclude=WITHOUT_MEMORY))
LEAN = ExportOptions(MetricSelection("topic", top_k=1, exclude=WITHOUT_MEMORY))
"""Full detail for one of the two groups, so the groups change places."""

Change = Callable[[MonitorState, str, int], None]
Scrape = Callable[[], str]


def apply_record(monitor_state: MonitorState, group_id: str, number: int, event: GroupEvent) -> None:
    """Apply a record of the group."""
    known = monitor_state.view().groups.get(group_id) or GroupState(GroupSnapshot(group_id))
    update = apply_batch(known, [event, sampled(NOW_MS + number, orders=3)], STRATEGIES)
    monitor_state.put_batch([update.record], [])


def rebalance(monitor_state: MonitorState, group_id: str, number: int) -> None:
    held = [member("m", {"orders": range(number % 4)}), member("n", {"orders": range(number % 4, 3)})]
    apply_record(monitor_state, group_id, number, written(number, number, held))


def empty_group(monitor_state: MonitorState, group_id: str, number: int) -> None:
    apply_record(monitor_state, group_id, number, emptied(number, number))


def delete_group(monitor_state: MonitorState, group_id: str, number: int) -> None:
    apply_record(monitor_state, group_id, number, tombstoned(number))


def forget_group(monitor_state: MonitorState, group_id: str, _: int) -> None:
    monitor_state.put_batch([], [], forgotten=[group_id])


def commit(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """Put a new sample with a different lag."""
    lagging = monitor_state_of([], {(group_id, "orders", 0): number, (group_id, "gone", 1): 5}).view()
    assert lagging.sample is not None
    monitor_state.put_sample(replace(lagging.sample, brokers=number), lagging.lag, monitor_state.view().listing)


def change_transaction(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """Begin or end an open transaction."""
    held = [coordinator_partition(group_id, PARTITIONS)] if number % 2 else []
    monitor_state.put_sample(sample_of(held=held), monitor_state.view().lag, monitor_state.view().listing)


def change_sample_age(monitor_state: MonitorState, _: str, number: int) -> None:
    """Let the sample become stale or fresh."""
    age_ms = (number % 2) * (STALE_AFTER_MS + 1)
    monitor_state.put_sample(sample_of(NOW_MS - age_ms), monitor_state.view().lag, monitor_state.view().listing)


def change_listing(monitor_state: MonitorState, group_id: str, number: int) -> None:
    state = "PreparingRebalance" if number % 2 else "Stable"
    listing = GroupListing(NOW_MS, {group_id: ListedGroup("classic", "consumer", state, 1)})
    monitor_state.put_sample(monitor_state.view().sample or sample_of(), monitor_state.view().lag, listing)


def measure_lag(monitor_state: MonitorState, group_id: str, number: int) -> None:
    """Put different lag shares for the current or an old assignment."""
    record = monitor_state.view().groups.get(group_id)
    if record is not None and record.evaluation is not None:
        lag = Imbalance(measure=LAG, scope="member", score=number % 100, max_to_mean_ratio=1 + number / 7)
        monitor_state.put_work({group_id: WorkShares(record.evaluation.position, (lag,))})


def close_gap(monitor_state: MonitorState, group_id: str, number: int) -> None:
    totals = GapTotals((number, 0, 0, 1, *[0] * 7), 700 * number) if number % 3 else None
    monitor_state.put_gap_totals([GapsClosed((), {group_id: totals})])


def change_condition(monitor_state: MonitorState, group_id: str, number: int) -> None:
    monitor_state.put_conditions({group_id: (Condition("rebalance_storm", 5, ""),)} if number % 2 else {})


def change_readiness(monitor_state: MonitorState, _: str, number: int) -> None:
    monitor_state.put_health(ready=not number % 2)


CHANGES: list[Change] = [
    rebalance,
    empty_group,
    delete_group,
    forget_group,
    commit,
    change_transaction,
    change_sample_age,
    change_listing,
    measure_lag,
    close_gap,
    change_condition,
    change_readiness,
]


def scraper(monitor_state: MonitorState, options: ExportOptions = EVERYTHING) -> Scrape:
    """Return a function that scrapes the monitor state and caches text between its calls."""
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, options)
    return lambda: answer(exporter)


STEPS = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(GROUPS), st.integers(1, 30)), max_size=12)


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_a_scrape_with_cached_text_equals_a_first_scrape(steps: list[tuple[Change, str, int]]) -> None:
    """Rule: the last value is never shown as the current one, after any changes in any order."""
    monitor_state = monitor_state_of([])
    scrape_cached = scraper(monitor_state)
    for change, group_id, number in steps:
        change(monitor_state, group_id, number)
        assert scrape_cached() == scraper(monitor_state)()


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_groups_that_enter_and_leave_full_detail_show_only_current_values(steps: list[tuple[Change, str, int]]) -> None:
    """The cached details of a group that is no longer one of the worst must not return later with old values."""
    monitor_state = monitor_state_of([])
    scrape_lean, scrape_all = scraper(monitor_state, LEAN), scraper(monitor_state)
    for change, group_id, number in steps:
        change(monitor_state, group_id, number)
        current = {*scrape_all().splitlines()}
        assert {*scrape_lean().splitlines()} <= current


def test_a_scrape_shows_each_of_the_changes() -> None:
    """The property test above is only useful for changes that a scrape shows."""
    for change in CHANGES:
        monitor_state = monitor_state_of([])
        for group_id in GROUPS:
            rebalance(monitor_state, group_id, 2)
        before = scraper(monitor_state)()
        change(monitor_state, "g", 3 if change is not close_gap else 4)
        assert scraper(monitor_state)() != before, change.__name__


def test_the_text_of_an_unchanged_group_is_written_once() -> None:
    """Of ten thousand groups, few change between two scrapes. So the cache saves most of the work."""
    monitor_state = monitor_state_of([])
    for group_id in GROUPS:
        rebalance(monitor_state, group_id, 2)
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, EVERYTHING)
    [cluster] = exporter._clusters
    caches = []
    for change in (commit, rebalance):
        answer(exporter)
        caches.append(dict(cluster._groups[0]._cache))
        change(monitor_state, "g", 3)
    answer(exporter)
    after = cluster._groups[0]._cache
    assert caches[0]["h"].texts is caches[1]["h"].texts is after["h"].texts, "a new sample does not change the text"
    assert caches[0]["g"].texts is caches[1]["g"].texts is not after["g"].texts


def test_the_cache_refers_to_the_current_objects() -> None:
    """A state that is read again is a new object. To keep the old object as well would waste memory."""
    monitor_state = monitor_state_of([])
    rebalance(monitor_state, "g", 2)
    exporter = Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, EVERYTHING)
    answer(exporter)
    [cluster] = exporter._clusters
    text = cluster._groups[0]._cache["g"].texts
    again = deepcopy(monitor_state.view().groups["g"])
    monitor_state.put_batch([again], [])
    answer(exporter)
    entry = cluster._groups[0]._cache["g"]
    assert any(getattr(part, "snapshot", None) is again.snapshot for part in entry.parts)
    assert entry.texts is text, "equal parts keep the same text"
