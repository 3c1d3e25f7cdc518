"""Reads start, end and position of a query's batches from the files of its Spark checkpoint.

Spark writes a file into `offsets` when it plans a batch. It contains the time and the positions up to which the batch
reads. Spark writes a file into `commits` when the batch is complete. Reading these files costs the measured process
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.events import OFFSETS_TOPIC


@dataclass(frozen=True, slots=True)
class Batch:
    """One complete batch. `position` is the number of records that were read up to its end."""

    batch_id: int
    started_seconds: float
    ended_seconds: float
    position: int

    @property
    def seconds(self) -> float:
        """Return the time from planning to the end."""
        return self.ended_seconds - self.started_seconds


class BatchLog:
    """The batches of one query. Spark deletes the files of old batches, so this class keeps all batches."""

    def __init__(self, query_folder: Path) -> None:
        self._folder = query_folder
        self._batches: dict[int, Batch] = {}

    def read(self) -> tuple[Batch, ...]:
        """Return all complete batches, in order."""
        for committed in sorted(self._folder.glob("commits/[0-9]*")):
            if (batch_id := int(committed.name)) not in self._batches:
                self._batches[batch_id] = self._read_one(batch_id, committed)
        return tuple(batch for _, batch in sorted(self._batches.items()))

    def is_running(self) -> bool:
        """Return whether a batch is planned but not complete."""
        planned, done = (self._folder / name for name in ("offsets", "commits"))
        return any(not (done / plan.name).exists() for plan in planned.glob("[0-9]*"))

    def _read_one(self, batch_id: int, committed: Path) -> Batch:
        _, planned, *sources = (self._folder / "offsets" / committed.name).read_text().splitlines()
        started_seconds = json.loads(planned)["batchTimestampMs"] / 1000
        return Batch(batch_id, started_seconds, committed.stat().st_mtime, _position(sources))


def _position(sources: Sequence[str]) -> int:
    for source in sources:
        if source.startswith("{") and OFFSETS_TOPIC in (parsed := json.loads(source)):
            return sum(parsed[OFFSETS_TOPIC].values())
    return 0


def seconds_at(batches: Sequence[Batch], position: int) -> float:
    """Return the time at which a position was reached. Within a batch, reading is assumed to be even.

    Raises ValueError if the position was not reached.

    Example: a batch that read 100 records from second 10 to 20 reached position 50 at second 15.
    """
    reached = 0
    for batch in batches:
        if position <= batch.position and batch.position > reached:
            part = (position - reached) / (batch.position - reached)
            return batch.started_seconds + part * batch.seconds
        reached = batch.position
    raise ValueError(f"position {position} was not reached, only {reached}")


def records_per_second(batches: Sequence[Batch], records: int, *, since_seconds: float) -> float:
    """Return the rate at which the first `records` were read, starting at `since_seconds`."""
    return records / (seconds_at(batches, records) - since_seconds)


def second_half_per_second(batches: Sequence[Batch], records: int) -> float:
    """Return the rate for the second half of `records`, which shows a JVM after its warm-up."""
    return (records - records // 2) / (seconds_at(batches, records) - seconds_at(batches, records // 2))
