"""The commits of the groups that have a boundary in a batch (`group_boundaries`), as Python values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.combine.gaps import FirstCommit, LastCommit, PartitionCommits, usual_interval_ms
from streaming.combine.group_boundaries import group_numbers


@dataclass(frozen=True, slots=True)
class Run:
    """A row of RUN_SCHEMA whose group has a boundary in the batch."""

    first_commit: FirstCommit
    boundary_offset: int
    commits: PartitionCommits


class LiveCommits:
    """The live commits of one group. `known` contains them in any order. Runs must be added in log order.

    A rebalance storm can have a thousand boundaries in one batch, and a group can have thousands of partitions. So the
    cost of a boundary must depend on the partitions that have commits since the previous boundary, and not on all
    partitions. For this reason, the last commits are sorted by their offset, and only partitions with a commit in the
    present generation have a run.
    """

    def __init__(self, known: Iterable[tuple[bytes, PartitionCommits]]) -> None:
        by_offset = sorted(known, key=lambda partition: partition[1].last_offset)
        self._last = OrderedDict((key, LastCommit(*commits[:3])) for key, commits in by_offset)
        self._runs = {key: commits for key, commits in by_offset if commits.run_commits}

    def add(self, run: Run) -> None:
        """Add a run. After a tombstone, the counts start again from 0."""
        key, last = run.first_commit.key, run.commits
        before = self._runs.pop(key, None)
        if last.last_offset < 0:
            self._last.pop(key, None)
            return
        if before is not None and run.first_commit.dropped_offset < 0:
            last = last._replace(run_first_ms=before.run_first_ms, run_commits=before.run_commits + last.run_commits)
        self._last[key], self._runs[key] = LastCommit(*last[:3]), last
        self._last.move_to_end(key)

    def newest(self) -> LastCommit | None:
        """Return the last commit of the group."""
        return next(reversed(self._last.values()), None)

    def all_pending(self) -> dict[bytes, LastCommit]:
        """Return the last commit of each partition."""
        return dict(self._last)

    def pending_of(self, runs: Iterable[Run]) -> tuple[dict[bytes, LastCommit], int]:
        """Return the last commits that a gap needs if only these runs follow before its next boundary.

        The result contains the partitions of the runs, and the oldest of all other last commits. The second value is
        the number of omitted partitions. Omitted partitions stay silent, and their last commits are newer than the
        oldest one.
        """
        keys = {run.first_commit.key for run in runs}
        pending = {key: self._last[key] for key in keys if key in self._last}
        omitted = len(self._last) - len(pending)
        if omitted:
            oldest = next(key for key in self._last if key not in keys)
            pending[oldest] = self._last[oldest]
        return pending, max(0, omitted - 1)

    def usual_interval_ms(self) -> int | None:
        """Return the usual interval of the present generation (`gaps`, rule 6)."""
        return usual_interval_ms(self._runs.values())

    def start_generation(self) -> None:
        """Start the counts of a new generation."""
        self._runs = {}

    def partition_commits(self) -> dict[bytes, PartitionCommits]:
        """Return the commits of each partition."""
        return {key: self._runs.get(key) or PartitionCommits(*last, -1, 0) for key, last in self._last.items()}


def first_commits_of(runs: pa.Table) -> Iterator[FirstCommit]:
    """Return the first commit of each row of RUN_SCHEMA."""
    names = ("key", "first_offset", "first_ms", "first_committed", "first_missing", "dropped_offset")
    return (FirstCommit(*row) for row in zip(*(runs[name].to_pylist() for name in names), strict=True))


def runs_by_group(runs: pa.Table, groups: Sequence[bytes]) -> dict[bytes, list[Run]]:
    """Return the runs (RUN_SCHEMA) of each group, in the order of their last commits."""
    found = list(_of_groups(runs, groups))
    own = runs.take(pa.array([row for _, row in found], pa.int64()))
    rows = zip(
        (group for group, _ in found),
        first_commits_of(own),
        own["boundary_offset"].to_pylist(),
        _partition_commits(own, PartitionCommits._fields),
        strict=True,
    )
    by_group: dict[bytes, list[Run]] = {}
    for group, first_commit, boundary_offset, commits in sorted(rows, key=lambda row: row[3].last_offset):
        by_group.setdefault(group, []).append(Run(first_commit, boundary_offset, commits))
    return by_group


def commits_by_group(known: pa.Table, groups: Sequence[bytes]) -> Mapping[bytes, LiveCommits]:
    """Return the live commits (`partition_state.LIVE_SCHEMA`) of each group."""
    found = list(_of_groups(known, groups))
    own = known.take(pa.array([row for _, row in found], pa.int64()))
    names = ("offsets_topic_offset", "timestamp_ms", "committed_offset", "run_first_ms", "run_commits")
    by_group: dict[bytes, list[tuple[bytes, PartitionCommits]]] = {group: [] for group in groups}
    for (group, _), key, commits in zip(found, own["key"].to_pylist(), _partition_commits(own, names), strict=True):
        by_group[group].append((key, commits))
    return {group: LiveCommits(of_group) for group, of_group in by_group.items()}


def _of_groups(table: pa.Table, groups: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """Return (group, row number) for each row whose key belongs to one of the groups."""
    number = group_numbers(table["key"].combine_chunks(), groups)
    return ((groups[number[row]], int(row)) for row in np.flatnonzero(number >= 0))


def _partition_commits(table: pa.Table, names: Iterable[str]) -> list[PartitionCommits]:
    return [PartitionCommits(*row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]
