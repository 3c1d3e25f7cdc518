"""When a query's batches began and ended and how far each read, as Spark wrote it down in the checkpoint.

A file in `offsets` is written when a batch is planned, with its time and the positions it will read to; one in
`commits` when the batch is wholly done. Looking there costs the measured process nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.events import OFFSETS_TOPIC


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that is done. `position` is the sum of the positions reached: all records read so far."""

    batch_id: int
    started_seconds: float
    ended_seconds: float
    position: int

    @property
    def seconds(self) -> float:
        """From its planning to its end."""
        return self.ended_seconds - self.started_seconds


class BatchLog:
    """The batches of one query. Spark forgets old ones, so what was read once is kept."""

    def __init__(self, query_folder: Path) -> None:
        self._folder = query_folder
        self._batches: dict[int, Batch] = {}

    def read(self) -> tuple[Batch, ...]:
        """Every batch that is done by now, in order."""
        for committed in sorted(self._folder.glob("commits/[0-9]*")):
            if (batch_id := int(committed.name)) not in self._batches:
                self._batches[batch_id] = self._read_one(batch_id, committed)
        return tuple(batch for _, batch in sorted(self._batches.items()))

    def is_running(self) -> bool:
        """Whether a batch is planned and not done yet."""
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
    """When a position was reached; inside a batch as if it read evenly. Raises ValueError where it was not.

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
    """The rate at which the first `records` were read, counted from a time on."""
    return records / (seconds_at(batches, records) - since_seconds)


def second_half_per_second(batches: Sequence[Batch], records: int) -> float:
    """The rate over the second half of `records`: what a JVM that has run for a while does."""
    return (records - records // 2) / (seconds_at(batches, records) - seconds_at(batches, records // 2))
