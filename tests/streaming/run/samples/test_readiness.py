"""Ready means: read up to where the log ended at the start, the query alive, verdicts made if they can be."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.run.samples.readiness import EVALUATED_WITHIN_SAMPLES, Readiness, is_caught_up

ENDS = {0: 10, 1: 0, 2: 7}


def sample(ends: Mapping[int, int], partitions: int | None = None, behind: int = 0) -> ClusterSample:
    """Return a sample with last stable offsets, the high watermark beyond them or not."""
    known = {partition: LogEnds(end + behind, end) for partition, end in ends.items()}
    return ClusterSample(
        0, offsets_topic=known, offsets_topic_partitions=len(ends) if partitions is None else partitions
    )


def ready(
    positions: Mapping[int, int], known: ClusterSample, readiness: Readiness | None = None, *, evaluated: bool = True
) -> bool:
    """Judge one sample."""
    return (readiness or Readiness(lambda: True)).after(positions, known, is_evaluated=evaluated)


@pytest.mark.parametrize(
    ("positions", "known", "is_ready", "why"),
    [
        ({0: 10, 1: 0, 2: 7}, sample(ENDS), True, "read to every end"),
        ({0: 12, 2: 9}, sample(ENDS), True, "and beyond; a partition without a record has nothing to read"),
        ({0: 9, 1: 0, 2: 7}, sample(ENDS), False, "one record short"),
        ({0: 10, 1: 0}, sample(ENDS), False, "a partition not begun"),
        ({0: 10, 1: 0, 2: 7}, sample(ENDS, behind=5), True, "behind an open transaction nobody can read"),
        ({}, sample({0: 0, 1: 0}), True, "an empty log is read"),
        ({}, sample({}), False, "no end was sampled: once this counted as read, with nothing read at all"),
        ({}, sample({}, partitions=50), False, "the topic has partitions, none has an end"),
        ({0: 10}, sample({0: 10}, partitions=2), False, "the end of one partition is not known"),
    ],
)
def test_ready_is_reading_to_where_the_log_ended(
    positions: Mapping[int, int], known: ClusterSample, is_ready: bool, why: str
) -> None:
    assert ready(positions, known) == is_ready, why


def test_the_ends_to_reach_are_those_of_the_first_whole_sample() -> None:
    """A log that grows faster than it is sampled would never be caught up with."""
    readiness = Readiness(lambda: True)
    assert not ready({0: 5}, sample({0: 10}, partitions=2), readiness), "not whole: no target"
    assert not ready({0: 5, 1: 0}, sample({0: 20, 1: 0}), readiness)
    assert not ready({0: 19, 1: 0}, sample({0: 500, 1: 0}), readiness)
    assert ready({0: 20, 1: 0}, sample({0: 900, 1: 0}), readiness)
    assert ready({0: 21, 1: 0}, sample({}, partitions=2), readiness), "once reached, it stays"


def test_a_dead_query_is_not_ready_whatever_was_read() -> None:
    alive = [True]
    readiness = Readiness(lambda: alive[0])
    assert ready({0: 10}, sample({0: 10}), readiness)
    alive[0] = False
    assert not ready({0: 10}, sample({0: 10}), readiness)


def test_a_query_started_again_has_to_catch_up_anew() -> None:
    readiness = Readiness(lambda: True)
    assert ready({0: 10}, sample({0: 10}), readiness)
    readiness.start_over()
    assert not ready({0: 10}, sample({0: 15}), readiness)
    assert ready({0: 15}, sample({0: 99}), readiness)


def test_verdicts_are_waited_for_but_not_for_ever() -> None:
    """Where new groups come all the time, some group always waits for a fact."""
    readiness = Readiness(lambda: True)
    waits = [ready({0: 10}, sample({0: 10}), readiness, evaluated=False) for _ in range(EVALUATED_WITHIN_SAMPLES)]
    assert waits == [False] * (EVALUATED_WITHIN_SAMPLES - 1) + [True]
    readiness.start_over()
    assert not ready({0: 5}, sample({0: 10}), readiness, evaluated=False), "the wait starts when the log is read"
    assert ready({0: 10}, sample({0: 10}), readiness, evaluated=True)


def test_the_source_says_what_has_to_be_reached_and_nobody_is_ready_before_it_can() -> None:
    """Where coordinators are asked the log's ends are not known, and the first poll takes their place."""
    targets: list[Mapping[int, int]] = []
    readiness = Readiness(lambda: True, lambda _: targets[0] if targets else None)
    assert not ready({-1: 9}, sample({}), readiness)
    targets.append({-1: 10})
    assert not ready({-1: 9}, sample({}), readiness)
    assert ready({-1: 10}, sample({}), readiness)


class _Interrupted(dict[int, int]):
    """Positions at whose first reading another thread starts the query over."""

    def __init__(self, positions: Mapping[int, int], readiness: Readiness) -> None:
        super().__init__(positions)
        self.restart = threading.Thread(target=readiness.start_over)

    def get(self, partition: int, default: int = 0) -> int:  # type: ignore[override]
        """Let the other thread have its chance first."""
        if not self.restart.is_alive():
            self.restart.start()
            self.restart.join(0.1)
        return super().get(partition, default)


def test_a_query_started_over_while_a_sample_is_judged_is_not_ready_by_the_old_ends() -> None:
    """Two threads: what the sampler is about to conclude from the old query must not outlast its end."""
    readiness = Readiness(lambda: True)
    positions = _Interrupted({0: 10}, readiness)
    ready(positions, sample({0: 10}), readiness)
    positions.restart.join()
    assert not ready({0: 10}, sample({0: 15}), readiness)


OFFSETS = st.dictionaries(st.integers(0, 5), st.integers(0, 9))


@given(OFFSETS, OFFSETS)
def test_reading_on_never_makes_us_less_caught_up(positions: dict[int, int], targets: dict[int, int]) -> None:
    further = {partition: position + 1 for partition, position in positions.items()}
    assert is_caught_up(positions, targets) <= is_caught_up(further, targets)
    assert is_caught_up(targets, targets)
