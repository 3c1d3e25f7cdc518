"""Tests of fetch requests for the next record of a group: the size limit, and responses without batches."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.evaluation.lag.next_offsets import FetchFailure, FetchResult, TailFetch
from streaming.protocol.record_batches import Tail
from streaming.sampling.tails import EMPTY_WITHIN, read_log_tails
from tests.streaming.protocol.test_record_batches import batch


class Broker:
    """Answers each fetch request with the same batches."""

    def __init__(self, records: bytes, last_stable_offset: int) -> None:
        self.records, self.last_stable_offset = records, last_stable_offset
        self.max_bytes: list[int] = []

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> list[SimpleNamespace]:
        """Return one response for each request."""
        self.max_bytes += [request.topics[0].partitions[0].partition_max_bytes for _, request in requests]
        partition = SimpleNamespace(
            error_code=0, records=self.records, last_stable_offset=self.last_stable_offset, aborted_transactions=()
        )
        return [SimpleNamespace(responses=[SimpleNamespace(partitions=[partition])]) for _ in requests]


def fetch(broker: Broker, committed_offset: int, from_offset: int) -> FetchResult:
    """Return the result of one fetch."""
    look = TailFetch("orders", 0, committed_offset, from_offset)
    return read_log_tails(broker, [look], {"orders": {0: 1}})[look]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("records", "offsets", "expected", "why"),
    [
        (b"", EMPTY_WITHIN, Tail(7 + EMPTY_WITHIN, is_record=False, read_to=7 + EMPTY_WITHIN), "a hole at the end"),
        (b"", EMPTY_WITHIN + 1, FetchFailure.FAILED, "the broker may not have read the tiered storage in time"),
        (batch(7, 1), 10**9, Tail(7, is_record=True, read_to=7), "a record far from the end"),
    ],
)
def test_an_empty_response_far_from_the_end_proves_nothing(
    records: bytes, offsets: int, expected: FetchResult, why: str
) -> None:
    """Otherwise, the lag of a group that is far behind on a topic with tiered storage would be 0 (KIP-405)."""
    assert fetch(Broker(records, 7 + offsets), 7, 7) == expected, why


def test_the_first_fetch_is_small_and_the_next_ones_are_larger() -> None:
    """Usually the first batch shows a record. Only aborted transactions can be longer."""
    broker = Broker(batch(7, 1), 9)
    fetch(broker, 7, 7)
    fetch(broker, 5, 7)
    first, following = broker.max_bytes
    assert first < following
