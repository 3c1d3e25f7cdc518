"""The latency probe: requests `/metrics` as often as Prometheus, and checks every value of the synthetic groups."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable

from streaming.delta.tables import ASSIGNMENT_DRIFT, REBALANCES
from streaming.evaluation.assignment.drift import MATCH
from streaming.evaluation.rebalances.rebalances import REBALANCE
from tests.bench.fill import BenchError
from tests.bench.rebalances import GENERATION_GAUGE, Delays, Rebalance
from tests.bench.scrape import Scrape, scrape
from tests.bench.synthetic_groups import FIRST_GENERATION, LoadProgress, SyntheticGroups

SCRAPE_SECONDS = 15.0
SCRAPE_TARGET_SECONDS = 1.0
"""Maximum duration of a scrape."""

_SETTLED_SECONDS = 120.0
_PAUSE_SECONDS = 2.0


class LatencyProbe:
    """Requests `/metrics` repeatedly. Measures the delay until rebalances are shown, and the duration of a response."""

    def __init__(self, port: int, synthetic_groups: SyntheticGroups) -> None:
        self._port = port
        self._synthetic_groups = synthetic_groups
        self._rebalances = 0
        self._requested_seconds = float("-inf")
        self.delays = Delays()
        self.scrape_seconds: list[float] = []
        self.scrape_bytes = 0

    def add_progress(self, written: Sequence[LoadProgress]) -> None:
        """Add the rebalances that the load has written, with their times."""
        for step in written:
            for k in range(self._rebalances, step.rebalances):
                one = self._synthetic_groups.rebalance(k)
                group_id = self._synthetic_groups.group_id(one.number)
                self.delays.add_completed(Rebalance(group_id, one.generation_id, step.at_ms / 1000))
            self._rebalances = max(self._rebalances, step.rebalances)

    def request_if_due(self) -> None:
        """Request /metrics if the last request was at least `SCRAPE_SECONDS` ago."""
        if time.monotonic() - self._requested_seconds >= SCRAPE_SECONDS:
            self.request()

    def request(self) -> Scrape:
        """Request /metrics now. Raises BenchError if the monitor does not respond."""
        self._requested_seconds = time.monotonic()
        answer = scrape(self._port)
        if answer is None:
            raise BenchError("the monitor does not respond on /metrics: see its log")
        self.scrape_seconds.append(answer.seconds)
        self.scrape_bytes = len(answer.text)
        self.delays.add_shown(answer.by_label(GENERATION_GAUGE, "group"), answer.at_seconds)
        return answer

    def await_correct_metrics(self, written: LoadProgress) -> None:
        """Request /metrics until every group has its last generation and lag. Raises BenchError if not in time."""
        deadline = time.monotonic() + _SETTLED_SECONDS
        while wrong := wrong_groups(self.request(), self._synthetic_groups, written):
            if time.monotonic() > deadline:
                raise BenchError(
                    f"/metrics is wrong for {len(wrong)} of {self._synthetic_groups.groups} groups: {wrong[0]}"
                )
            time.sleep(_PAUSE_SECONDS)


def unread_records(answer: Scrape) -> float:
    """Return the records of `__consumer_offsets` that the monitor had not read at its last sample."""
    return sum(answer.by_label("rebalance_monitor_offsets_topic_lag", "partition").values())


def wrong_groups(answer: Scrape, synthetic_groups: SyntheticGroups, written: LoadProgress) -> list[str]:
    """Return a line for each group whose generation or lag is wrong after all written records."""
    lag = answer.by_label("rebalance_monitor_group_lag", "group")
    generations = answer.by_label(GENERATION_GAUGE, "group")
    wrong = []
    for number in range(synthetic_groups.groups):
        group_id = synthetic_groups.group_id(number)
        expected = (
            synthetic_groups.last_generation(number, written.rebalances),
            synthetic_groups.lag(number, written.commits),
        )
        shown = (generations.get(group_id), lag.get(group_id))
        if shown != expected:
            wrong.append(f"{group_id} has generation and lag {shown}, not {expected}")
    return wrong


def check_tables(tables: Path, synthetic_groups: SyntheticGroups, rebalances: int) -> None:
    """Raise BenchError if a rebalance does not have exactly one row, or not the verdict `match` of its strategy."""
    expected = Counter(
        (synthetic_groups.group_id(one.number), one.generation_id)
        for one in map(synthetic_groups.rebalance, range(rebalances))
    )
    reported = DeltaTable(str(tables / REBALANCES.name)).to_pyarrow_table(
        columns=["group_id", "generation_id"], filters=[("kind", "=", REBALANCE)]
    )
    _expect(REBALANCES.name, expected, Counter(zip(*(column.to_pylist() for column in reported.columns), strict=True)))
    expected.update((synthetic_groups.group_id(number), FIRST_GENERATION) for number in range(synthetic_groups.groups))
    evaluated = DeltaTable(str(tables / ASSIGNMENT_DRIFT.name)).to_pyarrow_table(
        columns=["group_id", "generation_id"], filters=[("is_group_strategy", "=", True), ("verdict", "=", MATCH)]
    )
    found = Counter(zip(*(column.to_pylist() for column in evaluated.columns), strict=True))
    _expect(f"{ASSIGNMENT_DRIFT.name} ({MATCH})", expected, found)


def _expect(table: str, expected: Counter[tuple[str, int]], found: Counter[tuple[str, int]]) -> None:
    if missing := expected - found:
        raise BenchError(f"{table} lacks {missing.total()} of {expected.total()} rows, for example {min(missing)}")
    if extra := found - expected:
        raise BenchError(f"{table} has {extra.total()} rows too many, for example {min(extra)}")
