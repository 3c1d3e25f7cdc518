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
from streaming.combine.lanes import GapsClosed
from streaming.evaluation.conditions.condition_watch import Condition
from streaming.evaluation.fairness.imbalance import LAG, Imbalance
from streaming.evaluation.turn import GroupRecord, take_turn
from streaming.events import GroupEvent
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.prometheus.metrics import Exporter
from streaming.prometheus.shown import Shown
from streaming.signals import SIGNALS
from streaming.signals.monitor import RESIDENT_MEMORY_BYTES
from streaming.state.present import WorkShares
from streaming.state.registry import Registry
from tests.streaming.groups import emptied, member, sampled, tombstoned, written
from tests.streaming.http.answers import answer
from tests.streaming.prometheus.test_metrics import NOW_MS, PARTITIONS, STALE_AFTER_MS, registry_of, sample_of

GROUPS = ("g", "h")
STRATEGIES = [assignor_named(name) for name in ("range", "sticky")]
SHOWN = Shown(frozenset(SIGNALS) - {RESIDENT_MEMORY_BYTES.name})
"""The memory of the processes is another at each scrape."""

Change = Callable[[Registry, str, int], None]
Scraped = Callable[[], str]


def record_of(registry: Registry, group_id: str, number: int, event: GroupEvent) -> None:
    """Let a record of the group be read."""
    known = registry.present().groups.get(group_id) or GroupRecord(GroupSnapshot(group_id))
    turn = take_turn(known, [event, sampled(NOW_MS + number, orders=3)], STRATEGIES)
    registry.put_batch([turn.record], [])


def rebalanced(registry: Registry, group_id: str, number: int) -> None:
    held = [member("m", {"orders": range(number % 4)}), member("n", {"orders": range(number % 4, 3)})]
    record_of(registry, group_id, number, written(number, number, held))


def became_empty(registry: Registry, group_id: str, number: int) -> None:
    record_of(registry, group_id, number, emptied(number, number))


def deleted(registry: Registry, group_id: str, number: int) -> None:
    record_of(registry, group_id, number, tombstoned(number))


def forgotten(registry: Registry, group_id: str, _: int) -> None:
    registry.put_batch([], [], forgotten=[group_id])


def committed(registry: Registry, group_id: str, number: int) -> None:
    """Another sample, in which lag is another, too."""
    lagging = registry_of([], {(group_id, "orders", 0): number, (group_id, "gone", 1): 5}).present()
    assert lagging.sample is not None
    registry.put_sample(replace(lagging.sample, brokers=number), lagging.lag, registry.present().listing)


def held_back(registry: Registry, group_id: str, number: int) -> None:
    """An open transaction begins, or is over."""
    held = [coordinator_partition(group_id, PARTITIONS)] if number % 2 else []
    registry.put_sample(sample_of(held=held), registry.present().lag, registry.present().listing)


def stale(registry: Registry, _: str, number: int) -> None:
    """No broker answers for a while, or they do again."""
    age_ms = (number % 2) * (STALE_AFTER_MS + 1)
    registry.put_sample(sample_of(NOW_MS - age_ms), registry.present().lag, registry.present().listing)


def listed(registry: Registry, group_id: str, number: int) -> None:
    state = "PreparingRebalance" if number % 2 else "Stable"
    listing = GroupListing(NOW_MS, {group_id: ListedGroup("classic", "consumer", state, 1)})
    registry.put_sample(registry.present().sample or sample_of(), registry.present().lag, listing)


def measured(registry: Registry, group_id: str, number: int) -> None:
    """Lag is shared otherwise, of the assignment that stands or of one that did."""
    record = registry.present().groups.get(group_id)
    if record is not None and record.judgement is not None:
        lag = Imbalance(measure=LAG, scope="member", score=number % 100, max_to_mean_ratio=1 + number / 7)
        registry.put_work({group_id: WorkShares(record.judgement.position, (lag,))})


def gap_closed(registry: Registry, group_id: str, number: int) -> None:
    totals = GapTotals((number, 0, 0, 1, 0, 0), 700 * number) if number % 3 else None
    registry.put_gap_totals([GapsClosed((), {group_id: totals})])


def condition_changed(registry: Registry, group_id: str, number: int) -> None:
    registry.put_conditions({group_id: (Condition("rebalance_storm", 5, ""),)} if number % 2 else {})


def ready_or_not(registry: Registry, _: str, number: int) -> None:
    registry.put_health(ready=not number % 2)


CHANGES: list[Change] = [
    rebalanced,
    became_empty,
    deleted,
    forgotten,
    committed,
    held_back,
    stale,
    listed,
    measured,
    gap_closed,
    condition_changed,
    ready_or_not,
]


def scraper(registry: Registry) -> Scraped:
    """Return who scrapes it; who does so again and again keeps text."""
    exporter = Exporter([("prod", registry)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    return lambda: answer(exporter)


STEPS = st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from(GROUPS), st.integers(1, 30)), max_size=12)


@settings(deadline=None, max_examples=50)
@given(STEPS)
def test_who_has_scraped_before_sees_what_a_newcomer_sees(steps: list[tuple[Change, str, int]]) -> None:
    """Law: never a last value for the present. Whatever changes, in whatever order, also back to what it was."""
    registry = registry_of([])
    often = scraper(registry)
    for change, group_id, number in steps:
        change(registry, group_id, number)
        assert often() == scraper(registry)()


def test_each_of_the_changes_is_one_that_a_scrape_shows() -> None:
    """The law above says something of each of them only if there is something to see."""
    for change in CHANGES:
        registry = registry_of([])
        for group_id in GROUPS:
            rebalanced(registry, group_id, 2)
        before = scraper(registry)()
        change(registry, "g", 3 if change is not gap_closed else 4)
        assert scraper(registry)() != before, change.__name__


def test_text_of_a_group_that_stays_as_it_is_is_written_once() -> None:
    """What it is kept for: of ten thousand groups few change between two scrapes."""
    registry = registry_of([])
    for group_id in GROUPS:
        rebalanced(registry, group_id, 2)
    exporter = Exporter([("prod", registry)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    [cluster] = exporter._clusters
    kept = []
    for change in (committed, rebalanced):
        answer(exporter)
        kept.append(dict(cluster._groups._kept))
        change(registry, "g", 3)
    answer(exporter)
    after = cluster._groups._kept
    assert kept[0]["h"].texts is kept[1]["h"].texts is after["h"].texts, "also over another sample"
    assert kept[0]["g"].texts is kept[1]["g"].texts is not after["g"].texts


def test_what_is_kept_beside_a_text_is_what_is_known_now() -> None:
    """A record restored or read again is another object: one more of it for each group is memory for nothing."""
    registry = registry_of([])
    rebalanced(registry, "g", 2)
    exporter = Exporter([("prod", registry)], lambda: NOW_MS, STALE_AFTER_MS, SHOWN)
    answer(exporter)
    [cluster] = exporter._clusters
    text = cluster._groups._kept["g"].texts
    again = deepcopy(registry.present().groups["g"])
    registry.put_batch([again], [])
    answer(exporter)
    kept = cluster._groups._kept["g"]
    assert kept.parts[-1].snapshot is again.snapshot
    assert kept.texts is text, "equal parts, the same text"
