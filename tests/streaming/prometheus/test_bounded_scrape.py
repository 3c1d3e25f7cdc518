"""Tests that a scrape has only the selected series, within the limits, and counts the dropped series."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from streaming.config.names import NameFilter
from streaming.group.members import members
from streaming.prometheus.families.groups import GROUP_FAMILIES
from streaming.prometheus.families.members import member_families
from streaming.prometheus.metric_selection import ExportOptions, MetricSelection
from streaming.prometheus.metrics import Exporter
from streaming.prometheus.series_limit import UNLIMITED
from streaming.signals import CLUSTER as OF_A_CLUSTER
from streaming.signals import GRANULARITIES, GROUP, MEMBER, OWN, PARTITION, SIGNALS, TOPIC, exported_names
from streaming.signals.fairness import DRIFT_PARTITIONS
from streaming.signals.partitions import PARTITION_LAG
from streaming.state.monitor_state import MonitorState
from streaming.state.worst_groups import HELD_MS
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.prometheus.everything import STALE_AFTER_MS, everything
from tests.streaming.prometheus.test_metric_selection import selected_by

GRANULARITY = {name: signal.granularity for signal in SIGNALS.values() for name in exported_names(signal)}
DROPPED = "rebalance_monitor_dropped_series"
CHANGING = {DROPPED, "rebalance_monitor_resident_memory_bytes", "rebalance_monitor_disk_free_ratio"}
"""Metrics whose values change between two scrapes of the same view, and the number of dropped series."""
EVERY_METRIC = MetricSelection()
Line = tuple[str, tuple[tuple[str, str], ...], float]


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    """Return a monitor state with a value for every metric."""
    tables: Path = tmp_path_factory.mktemp("tables")
    return everything(tables)


@pytest.fixture(scope="module")
def whole(monitor_state: MonitorState) -> list[Sample]:
    """Return all samples of a scrape without limits."""
    return samples(exporter_of(monitor_state))


def exporter_of(
    monitor_state: MonitorState, selection: MetricSelection = EVERY_METRIC, max_series: int = UNLIMITED
) -> Exporter:
    options = ExportOptions(selection, max_series)
    return Exporter([(CLUSTER, monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, options)


def samples(exporter: Exporter) -> list[Sample]:
    """Return all samples of a scrape."""
    text = answer(exporter)
    return [sample for family in parse_text(text) for sample in family.samples]


def lines(scrape: Iterable[Sample]) -> set[Line]:
    """Return the samples for a comparison."""
    compared = (one for one in scrape if one.name not in CHANGING)
    return {(one.name, tuple(sorted(one.labels.items())), one.value) for one in compared}


def dropped(scrape: Iterable[Sample]) -> float:
    """Return the number of dropped series."""
    (count,) = (one.value for one in scrape if one.name == DROPPED)
    return count


def group_of(sample: Sample) -> str | None:
    return sample.labels.get("group", sample.labels.get("consumergroup"))


def groups_of(scrape: Iterable[Sample]) -> set[str]:
    return {group for group in map(group_of, scrape) if group is not None}


def by_group_and_granularity(scrape: Iterable[Sample]) -> Mapping[tuple[str | None, str], int]:
    """Count series. The group is None for series of topics and of the cluster."""
    return Counter((group_of(one), GRANULARITY[one.name]) for one in scrape)


def _title(parameter: object) -> str:
    return f"{parameter.granularity}-{parameter.top_k}" if isinstance(parameter, MetricSelection) else str(parameter)


LIMITS = pytest.mark.parametrize("max_series", [1, 60, 100, 200, 400, 700, 900, 1_200, 100_000])
SELECTIONS = pytest.mark.parametrize(
    "selection", [EVERY_METRIC, *(MetricSelection(TOPIC, top_k=k) for k in (1, 3, 100))], ids=_title
)


@LIMITS
@SELECTIONS
def test_a_scrape_respects_its_limit_and_counts_the_dropped_series(
    monitor_state: MonitorState, selection: MetricSelection, max_series: int
) -> None:
    """Rule 4: the monitor's own health is always shown. A scrape without it would look like a failed one."""
    whole = samples(exporter_of(monitor_state, selection))
    scrape = samples(exporter_of(monitor_state, selection, max_series))
    health = [one for one in whole if GRANULARITY[one.name] == OF_A_CLUSTER]
    assert len(scrape) <= max(max_series, len(health))
    assert len(scrape) + dropped(scrape) == len(whole)
    assert lines(health) <= lines(scrape)


@LIMITS
def test_a_scrape_shows_all_series_of_a_group_and_granularity_or_none(
    monitor_state: MonitorState, max_series: int
) -> None:
    """A user would take a sum over half of a group's partitions for the group's lag."""
    without_drift = MetricSelection(exclude=frozenset({DRIFT_PARTITIONS.name}))  # its series have two granularities
    whole = samples(exporter_of(monitor_state, without_drift))
    scrape = samples(exporter_of(monitor_state, without_drift, max_series))
    assert lines(scrape) <= lines(whole), "a shown series is the same as without limits"
    of_all, of_shown = by_group_and_granularity(whole), by_group_and_granularity(scrape)
    assert all(of_all[one] == shown for one, shown in of_shown.items())
    finest: dict[str | None, int] = defaultdict(int)
    for group, granularity in of_shown:
        finest[group] = max(finest[group], GRANULARITIES.index(granularity))
    for group, granularity in of_all:
        is_coarser = GRANULARITIES.index(granularity) <= finest[group]
        assert ((group, granularity) in of_shown) == is_coarser, "no coarser granularity is missing"


def test_the_k_worst_groups_are_shown_in_full_and_the_others_only_by_topic(
    monitor_state: MonitorState, whole: list[Sample]
) -> None:
    """Details of the worst groups are the same as with full detail for every group. No series counts as dropped."""
    selection = MetricSelection(TOPIC, top_k=2, family_sets=frozenset({OWN}))
    scrape = samples(exporter_of(monitor_state, selection))
    in_full = {group for group, granularity in by_group_and_granularity(scrape) if granularity == PARTITION}
    assert len(in_full) == 2
    assert {group for group, granularity in by_group_and_granularity(scrape) if granularity == GROUP} > in_full
    expected = {one for one in lines(whole) if _is_own_detail(one) and _group(one) in in_full}
    assert {one for one in lines(scrape) if _group(one) in in_full} == expected
    assert dropped(scrape) == 0


def _is_own_detail(line: Line) -> bool:
    return line[0].startswith("rebalance_monitor_") and GRANULARITY[line[0]] != MEMBER


def test_each_family_of_groups_has_a_level_that_the_exporter_writes() -> None:
    """The exporter writes cached text for three levels. It would never write a family of a different level."""
    assert {one.granularity for one in GROUP_FAMILIES} == {GROUP, PARTITION}
    assert {one.granularity for one in member_families(NameFilter())} == {MEMBER}


def test_two_scrapes_of_the_same_view_are_equal(monitor_state: MonitorState) -> None:
    """If a series disappears and returns, Prometheus stores a new series each time."""
    exporter = exporter_of(monitor_state, MetricSelection(top_k=4), 500)
    first = samples(exporter)
    assert all(lines(samples(exporter)) == lines(first) for _ in range(3))
    assert dropped(samples(exporter)) == dropped(first)


@pytest.mark.parametrize(("later_ms", "is_different"), [(HELD_MS, False), (HELD_MS + 1, True)])
def test_a_group_without_trouble_stays_in_full_for_some_time_and_then_loses_its_place(
    monitor_state: MonitorState, later_ms: int, is_different: bool
) -> None:
    """`state.worst_groups` keeps the place. Text that is cached between scrapes belongs to the right group."""
    view, changing, now_ms = monitor_state.view(), MonitorState(), [NOW_MS]
    assert view.sample is not None
    changing._view = view
    worst_in_full = ExportOptions(MetricSelection(TOPIC, top_k=1))
    exporter = Exporter([(CLUSTER, changing)], lambda: now_ms[0], STALE_AFTER_MS, worst_in_full)
    before = _in_full(samples(exporter))
    now_ms[0] += later_ms
    changing._view = replace(view, sample=replace(view.sample, sampled_at_ms=now_ms[0]), conditions={}, listing=None)
    after = samples(exporter)
    assert len(before) == len(_in_full(after)) == 1
    assert (_in_full(after) != before) == is_different
    if is_different:
        new_exporter = Exporter([(CLUSTER, changing)], lambda: now_ms[0], STALE_AFTER_MS, worst_in_full)
        assert lines(after) == lines(samples(new_exporter))


def _in_full(scrape: Iterable[Sample]) -> set[str | None]:
    return {group_of(one) for one in scrape if one.name == PARTITION_LAG.name}


@pytest.mark.parametrize(
    ("selection", "max_series"),
    [(EVERY_METRIC, UNLIMITED), (MetricSelection(TOPIC, top_k=2), UNLIMITED), (EVERY_METRIC, 500)],
    ids=_title,
)
def test_the_order_in_which_groups_became_known_changes_nothing(
    monitor_state: MonitorState, selection: MetricSelection, max_series: int
) -> None:
    """After a restart, the groups are read in a different order."""
    view, other = monitor_state.view(), MonitorState()
    other._view = replace(
        view,
        groups=dict(reversed(view.groups.items())),
        partition_states=dict(reversed(view.partition_states.items())),
        conditions=dict(reversed(view.conditions.items())),
        rebalancing_since_ms=dict(reversed(view.rebalancing_since_ms.items())),
    )
    scrape = samples(exporter_of(other, selection, max_series))
    assert lines(scrape) == lines(samples(exporter_of(monitor_state, selection, max_series)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1_300), st.integers(1, 300))
def test_a_higher_limit_hides_no_series(monitor_state: MonitorState, max_series: int, more: int) -> None:
    less = lines(samples(exporter_of(monitor_state, max_series=max_series)))
    assert less <= lines(samples(exporter_of(monitor_state, max_series=max_series + more)))


def test_before_it_is_ready_a_limited_scrape_has_only_health_and_drops_nothing() -> None:
    scrape = samples(exporter_of(MonitorState(), MetricSelection(top_k=1), 1))
    assert {GRANULARITY[one.name] for one in scrape} == {OF_A_CLUSTER}
    assert dropped(scrape) == 0


@pytest.mark.parametrize("granularity", ["group", "topic", "partition", "member"])
def test_metrics_are_shown_down_to_the_configured_granularity(monitor_state: MonitorState, granularity: str) -> None:
    selection = selected_by(granularity=granularity, top_k=0)
    scrape = {GRANULARITY[one.name] for one in samples(exporter_of(monitor_state, selection))}
    assert scrape == set(GRANULARITIES[: GRANULARITIES.index(granularity) + 1])


def test_member_ids_are_only_in_scrapes_with_the_granularity_member(monitor_state: MonitorState) -> None:
    """The id of a member changes at every start. So the number of series would grow without a limit."""
    records = monitor_state.view().alive_groups().values()
    ids = {member.member_id for record in records for member in members(record.snapshot)}
    assert ids
    for granularity in (GROUP, TOPIC, PARTITION, MEMBER):
        selection = selected_by(granularity=granularity)
        text = answer(exporter_of(monitor_state, selection))
        assert any(member_id in text for member_id in ids) == (granularity == MEMBER)


@pytest.mark.parametrize(
    ("compatible_with", "expected"),
    [
        ([], {"own"}),
        (["kafka_exporter"], {"own", "kafka_exporter"}),
        (["kafka_lag_exporter"], {"own", "kafka_lag_exporter"}),
        (["kafka_lag_exporter", "kafka_exporter"], {"own", "kafka_exporter", "kafka_lag_exporter"}),
    ],
)
def test_metric_names_of_other_exporters_are_shown_only_if_configured(
    monitor_state: MonitorState, compatible_with: list[str], expected: set[str]
) -> None:
    family_sets = {name: signal.family_set for signal in SIGNALS.values() for name in exported_names(signal)}
    selection = selected_by(compatible_with=compatible_with)
    assert {family_sets[one.name] for one in samples(exporter_of(monitor_state, selection))} == expected


def test_a_group_that_is_denied_has_no_series_and_the_others_keep_theirs(
    monitor_state: MonitorState, whole: list[Sample]
) -> None:
    """Series that the settings do not select do not count as dropped."""
    groups = groups_of(whole)
    allowed = next(iter(sorted(groups - {"billing"})))
    for names, expected in (
        (NameFilter(deny="billing"), groups - {"billing"}),
        (NameFilter(allow=re.escape(allowed)), {allowed}),
        (NameFilter(allow="no such group"), set()),
    ):
        scrape = samples(exporter_of(monitor_state, MetricSelection(groups=names)))
        assert groups_of(scrape) == expected
        assert lines(scrape) == {line for line in lines(whole) if _group(line) in {None, *expected}}
        assert dropped(scrape) == 0


def _group(line: Line) -> str | None:
    labels = dict(line[1])
    return labels.get("group", labels.get("consumergroup"))


def test_a_topic_that_is_denied_has_no_series_but_is_in_the_sums_of_groups(
    monitor_state: MonitorState, whole: list[Sample]
) -> None:
    """A name filter only hides series. It does not change the group's lag."""
    scrape = samples(exporter_of(monitor_state, MetricSelection(topics=NameFilter(deny="orders"))))
    assert any(one.labels.get("topic") == "orders" for one in whole)
    assert lines(scrape) == {line for line in lines(whole) if dict(line[1]).get("topic") != "orders"}


def test_unprintable_names_are_filtered_by_their_shown_form(monitor_state: MonitorState, whole: list[Sample]) -> None:
    """The scene has groups with all kinds of names that Kafka allows."""
    scrape = samples(exporter_of(monitor_state, MetricSelection(groups=NameFilter(deny=r"[^a-z-]*.*[^a-z-].*"))))
    assert {group_of(one) for one in scrape} < {group_of(one) for one in whole}
    assert all(re.fullmatch("[a-z-]*", group_of(one) or "") for one in scrape)


def test_several_clusters_share_the_limit_and_each_counts_its_dropped_series(monitor_state: MonitorState) -> None:
    """Rule 6: a cluster that needs less than its share leaves the rest to the others."""
    clusters = [("large", monitor_state), ("small", MonitorState())]
    exporter = Exporter(clusters, lambda: NOW_MS, STALE_AFTER_MS, ExportOptions(max_series=500))
    scrape = samples(exporter)
    assert len(scrape) <= 500
    assert len(scrape) > 400, "the small cluster leaves the rest of its share to the large one"
    dropped_by_cluster = {one.labels["cluster"]: one.value for one in scrape if one.name == DROPPED and one.value}
    assert dropped_by_cluster.keys() == {"large"}
    whole = samples(Exporter(clusters, lambda: NOW_MS, STALE_AFTER_MS))
    assert len(scrape) + sum(dropped_by_cluster.values()) == len(whole)
