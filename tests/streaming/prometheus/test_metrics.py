"""Tests of `/metrics` with Prometheus' own parsers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from assignors import assignor_named
from assignors.coordinator import coordinator_partition
from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.broker_clocks import ClockOffset
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds
from streaming.events import GroupEvent, TopicMetadata
from streaming.group.snapshot import GroupSnapshot
from streaming.prometheus.metrics import Exporter
from streaming.signals import exported_names, monitor
from streaming.signals.catalogue import signals_of
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import emptied, epoch, member, sampled, target, tombstoned, written
from tests.streaming.http.answers import answer
from tests.streaming.lags import evaluated_lag
from tests.streaming.polled.answers import answered, classic, classic_member

NOW_MS = 1_000_000
STALE_AFTER_MS = 30_000
PARTITIONS = 50
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
Commits = Mapping[tuple[str, str, int], int]

HEALTH = {name for signal in signals_of(monitor) for name in exported_names(signal)}


def exporter_of(monitor_state: MonitorState) -> Exporter:
    """Return the exporter that the HTTP port serves."""
    return Exporter([("prod", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS)


def scraped(monitor_state: MonitorState) -> Series:
    """Return every series of a scrape in the text format. Fail if a family or series appears twice."""
    text = answer(exporter_of(monitor_state))
    families = list(parse_text(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "each family appears once"
    samples = [sample for family in families for sample in family.samples]
    series = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(series) == len(samples), "each series appears once"
    return series


def named(series: Series, name: str, **labels: str) -> dict[str, float]:
    """Return the values of one family by its labels, without the given labels."""
    return {
        ",".join(f"{key}={value}" for key, value in labelled if key not in labels and key != "cluster"): measured
        for (family, labelled), measured in series.items()
        if family == name and labels.items() <= dict(labelled).items()
    }


def record(group: str, events: Iterable[GroupEvent]) -> GroupState:
    """Return a group after its events, with one batch per event."""
    state = GroupState(GroupSnapshot(group))
    for event in events:
        state = apply_batch(state, [event], [assignor_named("range"), assignor_named("roundrobin")]).record
    return state


def monitor_state_of(
    records: Iterable[GroupState] = (),
    commits: Commits | None = None,
    sample: ClusterSample | None = None,
    *,
    ready: bool = True,
) -> MonitorState:
    """Return a monitor state after a batch and a sample."""
    monitor_state = MonitorState()
    monitor_state.put_batch(records, [])
    rows = [
        {"group_id": group, "topic": topic, "partition": number, "committed_offset": offset, "commit_timestamp_ms": 1}
        for (group, topic, number), offset in (commits or {}).items()
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(LAG_SCHEMA)[:5]))
    sample = sample or sample_of()
    monitor_state.put_sample(sample, evaluated_lag(table, sample))
    monitor_state.put_health(ready=ready, was_ready=ready)
    return monitor_state


def sample_of(sampled_at_ms: int = NOW_MS, held: Iterable[int] = (), missing: Iterable[int] = ()) -> ClusterSample:
    """Return a sample of the topic `orders`.

    `held` are partitions of `__consumer_offsets` with an open transaction, `missing` those without a sample.
    """
    return ClusterSample(
        sampled_at_ms,
        {"orders": TopicMetadata(3, sampled_at_ms), "gone": TopicMetadata(None, sampled_at_ms)},
        {("orders", 0): 100, ("orders", 1): 100},
        {},
        {
            partition: LogEnds(20, 15 if partition in set(held) else 20)
            for partition in range(PARTITIONS)
            if partition not in set(missing)
        },
        PARTITIONS,
        clock_offsets={1: ClockOffset(-61_000, -59_000)},
    )


STABLE = [written(5, 3, [member("m", {"orders": [0, 1, 2]}), member("n", {})]), sampled(9_000, orders=3)]


def test_the_clock_of_each_broker_is_shown_with_the_error_of_the_estimate() -> None:
    """Defect 9: a user who sees a silent group needs to see the offset of the clock."""
    series = scraped(monitor_state_of())
    assert named(series, "rebalance_monitor_clock_offset_seconds") == {"broker=1": -60}
    assert named(series, "rebalance_monitor_clock_offset_within_seconds") == {"broker=1": 1}
    unknown = scraped(monitor_state_of(sample=replace(sample_of(), clock_offsets={})))
    assert named(unknown, "rebalance_monitor_clock_offset_seconds") == {}, "an idle broker has no series, not 0"


def test_a_clock_that_is_ahead_does_not_make_a_sample_stale() -> None:
    """The time of a scrape is corrected in the same way as the time of a sample."""
    corrected = replace(sample_of(NOW_MS - 120_000), clock_correction_ms=-120_000)
    assert named(scraped(monitor_state_of(sample=corrected)), "rebalance_monitor_ready") == {"": 1}
    assert named(scraped(monitor_state_of(sample=sample_of(NOW_MS - 120_000))), "rebalance_monitor_ready") == {"": 0}


@pytest.mark.parametrize("was_ready", [False, True])
def test_while_it_is_not_ready_the_monitor_shows_only_its_own_health(tmp_path: Path, was_ready: bool) -> None:
    """Rule 2. A monitor whose query fails once kept its last values, and they became the maximum of two monitors."""
    monitor_state = monitor_state_of([record("g", STABLE)], {("g", "orders", 0): 7}, ready=False)
    monitor_state.put_health(was_ready=was_ready)
    monitor_state.put_batch([], [PartitionSnapshot(0, 9, -1, {"offset_commit": 7}, {"truncated": 1})])
    monitor_state.put_health(not_known=("leader",), folders={"tables": str(tmp_path / "not-created-yet")})
    monitor_state.put_batch_end(0.8, NOW_MS)
    assert {name for name, _ in scraped(monitor_state)} == HEALTH
    assert named(scraped(monitor_state), "rebalance_monitor_ready") == {"": 0}


def test_a_fresh_monitor_that_knows_nothing_can_be_scraped() -> None:
    series = scraped(MonitorState())
    assert named(series, "rebalance_monitor_ready") == {"": 0}
    assert named(series, "rebalance_monitor_offsets_topic_lag") == {}, "an unknown value has no series"


def test_a_group_shows_its_members_verdicts_and_counters() -> None:
    series = scraped(monitor_state_of([record("g", STABLE)]))
    assert named(series, "rebalance_monitor_group_members") == {"group=g": 2}
    assert named(series, "rebalance_monitor_group_generation") == {"group=g": 3}
    assert named(series, "rebalance_monitor_member_partitions_max") == {"group=g": 3}
    assert named(series, "rebalance_monitor_idle_members") == {"group=g": 1}
    assert named(series, "rebalance_monitor_drift_partitions", group="g") == {
        "strategy=range": 1,
        "strategy=roundrobin": 1,
    }
    assert named(series, "kafka_consumergroup_members") == {"consumergroup=g": 2}
    (description,) = named(series, "rebalance_monitor_group_info", group="g")
    assert {*description.split(",")} >= {
        "group_type=classic", "protocol=range", "protocol_source=records", "protocol_type=consumer", "state=Stable",
        "team=", "max_severity=critical", "ignore_alerts=false",
    }  # fmt: skip


@pytest.mark.parametrize("counter", ["rebalances_total", "rebalances_failed_total", "empty_transitions_total"])
@pytest.mark.parametrize("events", [[written(0, 7)], [emptied(0, 7)], [epoch(0, 7)]])
def test_counters_of_a_new_group_start_at_zero(counter: str, events: list[GroupEvent]) -> None:
    """If a counter starts at 1, rate() does not see the first increase."""
    assert named(scraped(monitor_state_of([record("g", events)])), f"rebalance_monitor_{counter}") == {"group=g": 0}


def test_empty_groups_keep_reporting() -> None:
    """kafka-lag-exporter issue 63: metrics disappeared when a group had no members, which is when they are needed."""
    series = scraped(monitor_state_of([record("g", [*STABLE, emptied(9, 4)])], {("g", "orders", 0): 7}))
    assert named(series, "rebalance_monitor_group_members") == {"group=g": 0}
    assert named(series, "rebalance_monitor_empty_transitions_total") == {"group=g": 1}
    assert named(series, "rebalance_monitor_group_lag") == {"group=g": 93}
    assert named(series, "rebalance_monitor_drift_partitions") == {}, "a group without members has no drift"


@pytest.mark.parametrize(
    ("events", "absent", "why"),
    [
        ([written(5, 3)], ["drift_partitions"], "topic metadata is not known yet"),
        (
            [epoch(5), target(6)],
            ["group_members", "idle_members", "member_partitions_max", "drift_partitions"],
            "only the member's target is known",
        ),
        ([emptied(5, 3)], ["idle_members", "member_partitions_max"], "a group without members has no shares"),
    ],
)
def test_an_unknown_value_has_no_series(events: list[GroupEvent], absent: list[str], why: str) -> None:
    """An unknown value is not 0, NaN or the last value."""
    series = scraped(monitor_state_of([record("g", events)]))
    for name in absent:
        assert named(series, f"rebalance_monitor_{name}") == {}, why


def test_a_deleted_or_forgotten_group_has_no_series() -> None:
    monitor_state = monitor_state_of([record("g", STABLE), record("h", STABLE)])
    assert "group=g" in named(scraped(monitor_state), "rebalance_monitor_group_generation")
    monitor_state.put_batch([record("g", [*STABLE, tombstoned(9)])], [])
    assert not [labels for _, labels in scraped(monitor_state) if "g" in dict(labels).values()]
    monitor_state.put_batch([], [], forgotten=["h"])
    assert not [labels for _, labels in scraped(monitor_state) if "h" in dict(labels).values()]


LAGGING: Commits = {("g", "orders", 0): 90, ("g", "orders", 1): 100, ("g", "unsampled", 0): 5, ("h", "orders", 0): 40}


def test_known_lag_is_shown_and_a_sum_only_if_all_its_parts_are_known() -> None:
    series = scraped(monitor_state_of([], LAGGING))
    assert named(series, "kafka_consumergroup_lag", consumergroup="g") == {
        "partition=0,topic=orders": 10,
        "partition=1,topic=orders": 0,
    }
    assert named(series, "kafka_consumergroup_current_offset", consumergroup="g") == {
        "partition=0,topic=orders": 90,
        "partition=1,topic=orders": 100,
        "partition=0,topic=unsampled": 5,
    }
    assert named(series, "kafka_consumergroup_lag_sum") == {
        "consumergroup=g,topic=orders": 10,
        "consumergroup=h,topic=orders": 60,
    }
    assert named(series, "rebalance_monitor_group_lag") == {"group=h": 60}, "one partition of group g was not sampled"
    assert named(series, "kafka_topic_partitions") == {"topic=orders": 3}, "a deleted topic has no partitions"


def test_a_topic_with_an_unsampled_partition_has_no_sum() -> None:
    """Partition 2 has no end offset. The sum of the other two partitions would be wrong."""
    series = scraped(monitor_state_of([], {**LAGGING, ("g", "orders", 2): 5}))
    assert named(series, "kafka_consumergroup_lag_sum") == {"consumergroup=h,topic=orders": 60}
    assert len(named(series, "kafka_consumergroup_lag", consumergroup="g")) == 2


@pytest.mark.parametrize(("age_ms", "is_shown"), [(0, True), (STALE_AFTER_MS, True), (STALE_AFTER_MS + 1, False)])
def test_values_from_a_stale_sample_are_not_shown(age_ms: int, is_shown: bool) -> None:
    """The monitor's own lag is not shown either. It was once shown unchanged while no broker answered."""
    monitor_state = monitor_state_of([record("g", STABLE)], LAGGING, sample_of(NOW_MS - age_ms))
    series = scraped(monitor_state)
    for name in (
        "rebalance_monitor_group_lag",
        "kafka_consumergroup_lag",
        "kafka_topic_partitions",
        "rebalance_monitor_offsets_topic_lag",
        "rebalance_monitor_offsets_topic_blocked",
        "rebalance_monitor_offsets_topic_last_stable_offset",
        "rebalance_monitor_offsets_topic_leaderless_partitions",
        "rebalance_monitor_group_members",
    ):
        assert bool(named(series, name)) == is_shown, name
    assert named(series, "rebalance_monitor_ready") == {"": is_shown}


def test_groups_blocked_by_an_open_transaction_are_unknown_and_all_others_are_known() -> None:
    """With read_committed, an open transaction also hides rebalances and commits of other groups."""
    held = coordinator_partition("g", PARTITIONS)
    assert coordinator_partition("h", PARTITIONS) != held
    series = scraped(monitor_state_of([record("g", STABLE), record("h", STABLE)], LAGGING, sample_of(held=[held])))
    shown = {name for name, labels in series if dict(labels).get("group", dict(labels).get("consumergroup")) == "g"}
    assert shown == {
        "rebalance_monitor_group_info",
        "rebalance_monitor_group_limit",
        "rebalance_monitor_rebalances_total",
        "rebalance_monitor_rebalances_failed_total",
        "rebalance_monitor_empty_transitions_total",
        "rebalance_monitor_lag_unknown_partitions",
        "rebalance_monitor_topic_lag_unknown_partitions",
        "rebalance_monitor_assignment_verdict",
    }, "counters of read records stay, and the reason and the topics of the unknown lag are shown"
    assert named(series, "rebalance_monitor_assignment_verdict", group="g") == {"strategy=range,verdict=unknown": 1}
    (description,) = named(series, "rebalance_monitor_group_info", group="g")
    assert "state=Unknown" in description.split(",")
    assert named(series, "rebalance_monitor_offsets_topic_blocked")[f"partition={held}"] == 5
    assert named(series, "kafka_consumergroup_lag", consumergroup="h") == {"partition=0,topic=orders": 60}


def test_an_unsampled_partition_does_not_move_groups_to_other_partitions() -> None:
    """The hash of a group uses the count of all partitions, not the count of the sampled partitions.

    Otherwise, if one partition has no leader, wrong groups become unknown.
    """
    held = coordinator_partition("g", PARTITIONS)
    missing = (held + 1) % PARTITIONS
    groups = [f"group-{number}" for number in range(100)]
    monitor_state = monitor_state_of(
        [record(group, STABLE) for group in groups], None, sample_of(held=[held], missing=[missing])
    )
    unknown = {
        dict(labels)["group"]
        for name, labels in scraped(monitor_state)
        if dict(labels).get("state") == "Unknown" and name
    }
    assert unknown == {group for group in groups if coordinator_partition(group, PARTITIONS) == held}


NAMES = [
    "",
    '"',
    "\\",
    "\n",
    "\r\n",
    'a="b",c',
    "}",
    "é",
    "\N{ROCKET}",
    "\x00",
    "\u2028",
    "\ufffd",
    "#",
    " ",
    "x" * 3000,
]


@pytest.mark.parametrize("name", NAMES)
def test_any_group_name_is_one_series_and_is_read_back_unchanged(name: str) -> None:
    monitor_state = monitor_state_of([record(name, STABLE)], {(name, "orders", 0): 7})
    series = scraped(monitor_state)
    assert [dict(labels)["group"] for family, labels in series if family == "rebalance_monitor_group_members"] == [name]
    lags = [dict(labels)["consumergroup"] for family, labels in series if family == "kafka_consumergroup_lag"]
    assert lags == [name]


@given(st.lists(st.text(max_size=5), unique=True, max_size=5))
def test_any_different_group_names_are_different_series(names: list[str]) -> None:
    series = scraped(monitor_state_of([record(name, STABLE) for name in names]))
    shown = [dict(labels)["group"] for family, labels in series if family == "rebalance_monitor_group_members"]
    assert sorted(shown) == sorted(names)


def test_a_lone_surrogate_does_not_break_the_scrape() -> None:
    """UTF-8 cannot encode it. No decoder of the monitor creates one, but it must not hide the other groups."""
    series = scraped(monitor_state_of([record("bad\ud800", STABLE), record("good", STABLE)]))
    assert set(named(series, "rebalance_monitor_group_members")) == {"group=bad?", "group=good"}


@pytest.mark.parametrize("name", NAMES)
def test_the_openmetrics_format_can_be_parsed(name: str) -> None:
    monitor_state = monitor_state_of([record(name, STABLE)], {(name, "orders", 0): 7})
    text = answer(exporter_of(monitor_state), generate_openmetrics)
    families = list(parse_openmetrics(text))  # type: ignore[no-untyped-call]
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    (members,) = [family for family in families if family.name == "rebalance_monitor_group_members"]
    assert [sample.labels["group"] for sample in members.samples] == [name]


def test_counts_of_read_records_are_summed_over_partitions() -> None:
    monitor_state = MonitorState()
    partition_states = [
        PartitionSnapshot(0, 9, -1, {"offset_commit": 7, "group_metadata": 2}, {"truncated": 1}),
        PartitionSnapshot(1, 9, -1, {"offset_commit": 5}, {"truncated": 2, "bad_varint": 1}),
    ]
    monitor_state.put_batch([], partition_states)
    series = scraped(monitor_state)
    assert named(series, "rebalance_monitor_records_read_total") == {"kind=offset_commit": 12, "kind=group_metadata": 2}
    assert named(series, "rebalance_monitor_records_skipped_total") == {"reason=truncated": 3, "reason=bad_varint": 1}
    assert named(series, "rebalance_monitor_state_rows") == {"": 2}


def test_the_monitors_own_lag_is_the_distance_from_its_position_to_the_high_watermark() -> None:
    """A partition may end in transaction markers. The position is after the markers."""
    monitor_state = monitor_state_of(sample=replace(sample_of(held=[2]), offsets_topic_partitions=PARTITIONS))
    monitor_state.put_health(positions={0: 20, 1: 12, 2: 15, 3: 99})
    lag = named(scraped(monitor_state), "rebalance_monitor_offsets_topic_lag")
    assert [lag[f"partition={number}"] for number in range(5)] == [0, 8, 5, 0, 20]
    held = named(scraped(monitor_state), "rebalance_monitor_offsets_topic_blocked")
    assert {number: held[f"partition={number}"] for number in (1, 2)} == {1: 0, 2: 5}
    stable = named(scraped(monitor_state), "rebalance_monitor_offsets_topic_last_stable_offset")
    assert {number: stable[f"partition={number}"] for number in (1, 2)} == {1: 20, 2: 15}


@pytest.mark.parametrize(
    ("leaders", "partitions", "shown"),
    [
        ({0: 1, 1: 1}, 2, {"": 0}),
        ({1: 1}, 2, {"": 1}),
        ({}, 2, {"": 2}),
        ({}, 0, {}),  # the brokers do not show the topic
    ],
)
def test_partitions_without_a_leader_are_counted_while_the_monitor_is_not_ready(
    leaders: dict[int, int], partitions: int, shown: dict[str, float]
) -> None:
    """A partition without a leader makes the monitor not ready. The alert needs this metric at that time."""
    sample = replace(sample_of(), offsets_topic_partitions=partitions, offsets_topic_leaders=leaders)
    monitor_state = monitor_state_of(sample=sample)
    monitor_state.put_health(ready=False)
    assert named(scraped(monitor_state), "rebalance_monitor_offsets_topic_leaderless_partitions") == shown


def test_a_polled_group_has_no_generation_and_no_failed_rebalances_and_the_limitations_are_shown() -> None:
    """Rule 2: DescribeGroups returns no generation, and the number of failed rebalances is unknown, not 0."""
    polled_record = record("g", [answered(1, classic(classic_member("a", [0])))])
    monitor_state = monitor_state_of([polled_record])
    monitor_state.put_health(source="admin-api", not_known=("generation_id", "leader"))
    series = scraped(monitor_state)
    assert _sources(series) == {"admin-api"}
    assert named(series, "rebalance_monitor_source_limitation_info") == {
        "capability=generation_id": 1,
        "capability=leader": 1,
    }
    assert named(series, "rebalance_monitor_group_members", group="g") == {"": 1}
    assert named(series, "rebalance_monitor_rebalances_total", group="g") == {"": 0}
    for unknown in ("rebalance_monitor_group_generation", "rebalance_monitor_rebalances_failed_total"):
        assert named(series, unknown) == {}


def _sources(series: Series) -> set[str]:
    return {dict(labels)["source"] for name, labels in series if name == "rebalance_monitor_info"}


def test_the_log_as_source_has_no_limitations() -> None:
    series = scraped(monitor_state_of([record("g", STABLE)]))
    assert _sources(series) == {"offsets-topic"}
    assert named(series, "rebalance_monitor_source_limitation_info") == {}
    assert named(series, "rebalance_monitor_rebalances_failed_total", group="g") == {"": 0}
