"""Measures how long the strategies take: ``python -m tests.bench.assignors``, or ``make bench-assignors``.

Prints the median for each strategy and size, its target and Java's own figure, all in milliseconds.
"""

from __future__ import annotations

import gc
import hashlib
import statistics
import sys
import timeit
import tracemalloc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assignors import assignor_named
from assignors.model import GroupSpec, MemberSubscription

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assignors.model import GroupAssignment

SIZES = ((100, 1_000, 10), (1_000, 10_000, 100), (1_000, 100_000, 100))
"""Sizes of the groups: members, partitions, topics."""

MIN_TIMED_SECONDS = 1.0
MAX_RUNS = 15


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table: the group and the strategies, and for each of SIZES the target and Java's time."""

    label: str
    strategies: tuple[str, ...]
    target_ms: tuple[int, int, int]
    java_ms: tuple[str, str, str]
    heterogeneous: bool = False
    one_left: bool = False


STICKY = ("sticky", "cooperative-sticky")
CASES = (
    Case("equal", ("range", "roundrobin"), (2, 30, 300), ("0.3", "29", "143")),
    Case("scratch, equal", STICKY, (3, 40, 400), ("0.1", "6", "15")),
    Case("one left, equal", STICKY, (4, 60, 600), ("0.4", "9", "164"), one_left=True),
    Case("scratch, het", STICKY, (25, 1_000, 20_000), ("24", "4,384", "> 60,000"), heterogeneous=True),
    Case("one left, het", STICKY, (5, 80, 800), ("1.1", "20", "265"), heterogeneous=True, one_left=True),
    Case("equal", ("uniform", "server-range"), (2, 30, 300), ("0.03", "0.4", "3.6")),
)


def make_group(members: int, partitions: int, topics: int, *, heterogeneous: bool) -> GroupSpec:
    """Create a group of this size. If heterogeneous, each member subscribes to a random half of the topics.

    >>> len(make_group(3, 12, 4, heterogeneous=True).members[0].topics)
    2
    """
    names = [f"topic-{number:03}" for number in range(topics)]
    member_ids = [f"member-{number:04}" for number in range(members)]
    return GroupSpec(
        tuple(
            MemberSubscription(member_id, _half(names, member_id) if heterogeneous else tuple(names))
            for member_id in member_ids
        ),
        dict.fromkeys(names, partitions // topics),
    )


def _half(topics: Sequence[str], member_id: str) -> tuple[str, ...]:
    """Choose half of the topics pseudo-randomly, with the same result in every run."""
    shuffled = sorted(topics, key=lambda topic: hashlib.sha256(f"{member_id}/{topic}".encode()).digest())
    return tuple(sorted(shuffled[: len(topics) // 2]))


def remove_one_member(group: GroupSpec, assignment: GroupAssignment) -> GroupSpec:
    """Return the group with the owners of ``assignment`` after the middle member has left."""
    members = [replace(member, owned=assignment.members[member.member_id], generation_id=1) for member in group.members]
    del members[len(members) // 2]
    return replace(group, members=tuple(members))


def medians_ms(case: Case, size: tuple[int, int, int], max_runs: int) -> Iterator[tuple[str, float]]:
    """Measure each strategy of a case at one size. Yields its name and the median in milliseconds."""
    group = make_group(*size, heterogeneous=case.heterogeneous)
    if case.one_left:
        group = remove_one_member(group, assignor_named("sticky").assign(group))
    for name in case.strategies:
        yield name, _median_ms(name, group, max_runs)


def _median_ms(name: str, group: GroupSpec, max_runs: int) -> float:
    assignor, times_ms = assignor_named(name), list[float]()
    while len(times_ms) < max_runs and (len(times_ms) < 3 or sum(times_ms) < MIN_TIMED_SECONDS * 1000):
        gc.collect()
        # timeit disables the garbage collector by default. In production it runs, so it is enabled here.
        times_ms.append(timeit.timeit(lambda: assignor.assign(group), setup=gc.enable, number=1) * 1000)
    return statistics.median(times_ms)


def peak_mib() -> float:
    """Return the peak memory in MiB that one assignment at the largest size allocates, without its input."""
    group = make_group(*SIZES[-1], heterogeneous=True)
    tracemalloc.start()
    assignor_named("cooperative-sticky").assign(group)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak_bytes / 2**20


def report(sizes: Sequence[tuple[int, int, int]] = SIZES, max_runs: int = MAX_RUNS) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = [f"{members:,} x {partitions:,}" for members, partitions, _ in sizes]
    yield f"{'median ms (target; Java)':36}" + "".join(f"{head:>30}" for head in heads)
    for case in CASES:
        cells: dict[str, str] = dict.fromkeys(case.strategies, "")
        for column, size in enumerate(sizes):
            for name, median_ms in medians_ms(case, size, max_runs):
                bounds = f"({case.target_ms[column]:,}; {case.java_ms[column]})"
                late = "!" if median_ms > case.target_ms[column] else " "
                cells[name] += f"{median_ms:>11,.1f}{late}{bounds:>18}"
        for name, cell in cells.items():
            yield f"{name + ', ' + case.label:36}{cell}"


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"peak memory of the largest, heterogeneous: {peak_mib():.0f} MiB (target 300)\n")
