"""Tests of clock offsets computed from records: the bounds are correct, and records with wrong times are outvoted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.evaluation.lag.broker_clocks import (
    KNOWN_FOR_MS,
    MAX_OFFSET_MS,
    MIN_INTERVALS,
    VISIBLE_AFTER_MS,
    BrokerClocks,
    ClockOffset,
    OffsetsTopicEnds,
    ReceivedRecords,
    largest_overlap,
)

SECOND_MS = 1_000
START_MS = 1_700_000_000_000


def records(received_ms: int, *of_records: tuple[int, int, int]) -> ReceivedRecords:
    """Return records of (partition, offset, time)."""
    partitions, offsets, times = np.array(of_records, dtype=np.int64).reshape(-1, 3).T
    return ReceivedRecords(received_ms, partitions, offsets, times)


class Cluster:
    """Brokers with different clocks. Broker n leads partition n and writes a record at a fixed interval."""

    def __init__(self, offsets_ms: Mapping[int, int], every_seconds: Sequence[int] = (1,)) -> None:
        self.offsets_ms, self.every_seconds = offsets_ms, every_seconds
        self.clocks, self.now_ms = BrokerClocks(), START_MS
        self.ends = dict.fromkeys(offsets_ms, 0)
        self.unread: list[tuple[int, int, int]] = []

    def run(self, seconds: int, *, writing: bool = True, made_up: int = 0) -> None:
        """Advance the time, with a sample every five seconds.

        A batch every second has the records written before it.
        """
        for second in range(seconds):
            if second % 5 == 0:
                leaders = {number: number for number in self.ends}
                self.clocks.add_ends(OffsetsTopicEnds(self.now_ms, dict(self.ends), leaders))
            batch, self.unread = self.unread, []
            if batch:
                self.clocks.add_records(records(self.now_ms, *batch))
            self.now_ms += SECOND_MS
            for number in self.ends if writing else ():
                if second % self.every_seconds[number % len(self.every_seconds)] == 0:
                    self.write(number, self.offsets_ms[number])
            for _ in range(made_up):
                self.write(0, 40 * 60 * SECOND_MS)

    def write(self, number: int, offset_ms: int) -> None:
        """Write one record whose time differs from the monitor's clock by `offset_ms`."""
        self.unread.append((number, self.ends[number], self.now_ms - 300 + offset_ms))
        self.ends[number] += 1


OFFSETS_MS = st.integers(-120 * SECOND_MS, 120 * SECOND_MS)


@given(OFFSETS_MS, OFFSETS_MS, st.integers(1, 5))
@example(0, 0, 1)
@example(-9 * SECOND_MS, 0, 1)
def test_the_bounds_are_correct_and_as_narrow_as_the_interval_of_records(
    one_ms: int, other_ms: int, every_seconds: int
):
    """Rules 1 to 4, for two brokers at once."""
    cluster = Cluster({0: one_ms, 1: other_ms}, (1, every_seconds))
    cluster.run(60)
    found = cluster.clocks.offsets(cluster.now_ms)
    assert sorted(found) == [0, 1]
    for broker, true_ms in cluster.offsets_ms.items():
        assert found[broker].lowest_ms <= true_ms <= found[broker].highest_ms
        width_ms = found[broker].highest_ms - found[broker].lowest_ms
        assert width_ms <= VISIBLE_AFTER_MS + (2 + every_seconds) * SECOND_MS


@pytest.mark.parametrize("offset_ms", [-START_MS, -30 * 3_600 * SECOND_MS, 30 * 3_600 * SECOND_MS, 10**12])
def test_a_large_clock_offset_is_measured_like_a_small_one(offset_ms: int) -> None:
    """Rule 4. Before, clock offsets above 24 hours were unknown, so there was no warning. First case: the year 1970."""
    cluster = Cluster({0: offset_ms})
    cluster.run(60)
    assert abs(cluster.clocks.offsets(cluster.now_ms)[0].middle_ms - offset_ms) <= 2 * SECOND_MS
    assert abs(cluster.clocks.corrections_ms(cluster.now_ms)[0] - offset_ms) <= 3 * SECOND_MS


def test_one_record_is_enough_for_the_first_correction() -> None:
    """Rule 5. Before, the correction was 0 until three batches had records, which takes minutes on a quiet cluster."""
    clocks = BrokerClocks()
    clocks.add_ends(OffsetsTopicEnds(START_MS, {0: 10}, {0: 7}))
    clocks.add_records(records(START_MS + 100, (0, 10, START_MS - 60 * SECOND_MS)))
    assert clocks.corrections_ms(START_MS + 200) == {7: -60 * SECOND_MS - 100}
    assert clocks.offsets(START_MS + 200) == {}, "one record can have a wrong time, so it causes no warning"


@given(OFFSETS_MS)
def test_a_correction_never_overstates_the_brokers_time(offset_ms: int):
    """Rule 5: overstated silence is a false alert. A monitor 9 s ahead reported STOP for a busy group."""
    cluster = Cluster({0: offset_ms})
    cluster.run(60)
    correction_ms = cluster.clocks.corrections_ms(cluster.now_ms)[0]
    if correction_ms:
        assert offset_ms - 3 * SECOND_MS <= correction_ms <= offset_ms
    else:
        assert abs(offset_ms) <= 3 * SECOND_MS


def test_an_idle_broker_has_no_offset_and_keeps_its_correction():
    """Rule 2: an unknown offset is not 0. A group that becomes silent must be found in the same time."""
    cluster = Cluster({0: -60 * SECOND_MS})
    cluster.run(60)
    correction_ms = cluster.clocks.corrections_ms(cluster.now_ms)
    cluster.run(KNOWN_FOR_MS // SECOND_MS + 10, writing=False)
    assert cluster.clocks.offsets(cluster.now_ms) == {}
    assert cluster.clocks.corrections_ms(cluster.now_ms) == correction_ms


def test_records_with_times_of_other_clocks_are_outvoted():
    """Rule 4: any client with write permission can write any time, and records can be copied."""
    cluster = Cluster({0: 2 * SECOND_MS})
    cluster.run(60)
    cluster.run(20, made_up=5)
    found = cluster.clocks.offsets(cluster.now_ms)[0]
    assert found.lowest_ms <= 2 * SECOND_MS <= found.highest_ms


def test_a_changed_clock_is_followed():
    cluster = Cluster({0: 90 * SECOND_MS})
    cluster.run(60)
    assert cluster.clocks.corrections_ms(cluster.now_ms)[0] > 80 * SECOND_MS
    cluster.offsets_ms = {0: 0}
    cluster.run(60)
    assert cluster.clocks.corrections_ms(cluster.now_ms) == {0: 0}


@pytest.mark.parametrize(
    ("offset_ms", "why"),
    [
        (-3_600 * SECOND_MS, "an operator set the clock ahead, so all brokers are behind it now"),
        (0, "the machine was paused for an hour, so its time since boot was wrong, and its clock is right again"),
    ],
)
def test_after_a_step_of_the_monitors_clock_one_record_corrects_all_brokers(offset_ms: int, why: str) -> None:
    """Rule 6. Broker 1 writes nothing after the step. Before, its correction was wrong until its next record."""
    cluster = Cluster({0: 0, 1: 0})
    cluster.run(60)
    assert cluster.clocks.corrections_ms(cluster.now_ms) == {0: 0, 1: 0}
    cluster.now_ms += 3_600 * SECOND_MS
    cluster.clocks.clock_was_set(3_600 * SECOND_MS)
    assert cluster.clocks.corrections_ms(cluster.now_ms) == dict.fromkeys((0, 1), -3_600 * SECOND_MS)
    cluster.unread, cluster.every_seconds, cluster.offsets_ms = [], (2, 100), {0: offset_ms, 1: offset_ms}
    cluster.ends[1] += 1
    cluster.run(9)
    assert cluster.clocks.corrections_ms(cluster.now_ms) == {0: offset_ms, 1: offset_ms}, why


def test_a_pause_of_the_machine_is_detected_although_the_correction_is_not_exact() -> None:
    """Rule 6. Broker 7 is 1.2 s ahead, and its correction was 0.8 s. The next interval was [1.0 s, 1.9 s].

    It contained neither correction. So the idle brokers, and all times of the cluster, stayed wrong by the pause.
    """
    clocks, hour_ms = BrokerClocks({7: 800, 8: 0, 9: 0}), 3_600 * SECOND_MS
    clocks.clock_was_set(hour_ms)
    clocks.add_ends(OffsetsTopicEnds(START_MS, {0: 10}, {0: 7}))
    clocks.add_records(records(START_MS + 300, (0, 10, START_MS + 100 + 1_200)))
    assert clocks.corrections_ms(START_MS + 400) == {7: 1_000, 8: 0, 9: 0}


def test_one_record_corrects_a_stored_correction_after_a_start() -> None:
    """Rule 6: the clock was set while no monitor ran. Before, three batches had wrong times."""
    clocks = BrokerClocks({7: 0})
    clocks.add_ends(OffsetsTopicEnds(START_MS, {0: 10}, {0: 7}))
    clocks.add_records(records(START_MS + 100, (0, 10, START_MS - 60 * SECOND_MS)))
    assert clocks.corrections_ms(START_MS + 200) == {7: -60 * SECOND_MS - 100}


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        ([(0, 5, START_MS)], "written before the first sample: it can be old"),
        ([(1, 50, START_MS)], "the partition was not sampled"),
        ([(0, 50, -1)], "the record has no time"),
        ([(0, 50, START_MS + 2 * MAX_OFFSET_MS)], "no clock shows a time after more than a century"),
        ([(0, 50, 2**63 - 1)], "the largest time"),
        ([(0, 50, -(2**63))], "the smallest time"),
        ([], "the batch has no record"),
    ],
)
def test_such_records_are_ignored(batch: list[tuple[int, int, int]], why: str):
    clocks = BrokerClocks()
    clocks.add_records(records(START_MS, (0, 50, START_MS)))
    for at in range(2 * MIN_INTERVALS):
        clocks.add_ends(OffsetsTopicEnds(START_MS + at, {0: 10}, {0: 7}))
        clocks.add_records(records(START_MS + at + 1, *batch))
    assert clocks.offsets(START_MS + 10) == {}, why
    assert clocks.corrections_ms(START_MS + 10) == {}


def test_records_before_a_leader_change_are_not_used_for_the_new_leader():
    clocks = BrokerClocks()
    for at in range(2 * MIN_INTERVALS):
        clocks.add_ends(OffsetsTopicEnds(START_MS + at, {0: 10}, {0: at}))
        clocks.add_ends(OffsetsTopicEnds(START_MS + at, {0: 99}, {0: at + 1}))
        clocks.add_records(records(START_MS + at + 1, (0, 50, START_MS)))
    assert clocks.offsets(START_MS + 10) == {}


PARTITIONS = st.integers(0, 2)
SAMPLES = st.lists(
    st.tuples(st.dictionaries(PARTITIONS, st.integers(0, 9)), st.dictionaries(PARTITIONS, st.integers(0, 1))),
    min_size=1,
    max_size=5,
)
BATCHES = st.lists(st.tuples(PARTITIONS, st.integers(0, 12), st.integers(-9, 9)), min_size=1, max_size=12)


def offsets_record_by_record(
    received_ms: int, batch: Sequence[tuple[int, int, int]], samples: Sequence[OffsetsTopicEnds]
) -> Mapping[int, ClockOffset]:
    """Return the clock offset of each broker. This is rules 1 to 3 without NumPy."""
    intervals = defaultdict(list)
    for partition, offset, time_ms in batch:
        earlier = [one for one in samples if one.end_offsets.get(partition, offset + 1) <= offset]
        leader = earlier[-1].leaders.get(partition) if earlier else None
        if leader is not None and leader == samples[-1].leaders.get(partition):
            bounds = time_ms - received_ms, time_ms - earlier[-1].asked_ms + VISIBLE_AFTER_MS
            intervals[leader].append(bounds)
    return {leader: largest_overlap(np.array(of_leader))[0] for leader, of_leader in intervals.items()}


@given(SAMPLES, BATCHES)
def test_each_record_is_compared_with_the_last_sample_before_it(
    drawn_samples: list[tuple[dict[int, int], dict[int, int]]], drawn_batch: list[tuple[int, int, int]]
) -> None:
    """Rules 1 and 2: the bulk computation equals a computation record by record."""
    samples = [
        OffsetsTopicEnds(START_MS + number * SECOND_MS, *of_sample) for number, of_sample in enumerate(drawn_samples)
    ]
    batch = [(partition, offset, START_MS + seconds * SECOND_MS) for partition, offset, seconds in drawn_batch]
    received_ms = START_MS + 20 * SECOND_MS
    clocks = BrokerClocks()
    for sample in samples:
        clocks.add_ends(sample)
    for _ in range(MIN_INTERVALS):
        clocks.add_records(records(received_ms, *batch))
    assert clocks.offsets(received_ms) == offsets_record_by_record(received_ms, batch, samples)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), min_size=1))
def test_the_point_of_most_overlaps_equals_a_brute_force_count(drawn: list[tuple[int, int]]):
    """Marzullo's algorithm is compared with a count at every whole number."""
    intervals = np.array([(low, low + width) for low, width in drawn])
    agreed, count = largest_overlap(intervals)
    counts = {at: sum(low <= at <= high for low, high in intervals.tolist()) for at in range(-10, 20)}
    assert count == max(counts.values())
    assert agreed.lowest_ms == min(at for at, there in counts.items() if there == count)
    assert all(counts[at] == count for at in range(agreed.lowest_ms, agreed.highest_ms + 1))


def test_a_difference_is_certain_only_outside_the_bounds():
    assert [ClockOffset(low, high).least_ms for low, high in ((-5, 5), (3, 9), (-9, -3))] == [0, 3, 3]
