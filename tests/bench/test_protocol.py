"""Tests of the decoder's benchmark."""

from __future__ import annotations

import re

import pytest

from tests.bench.protocol import figures, read_records
from tests.streaming.protocol.records import SAMPLE, sample_records


def test_the_benchmark_reads_the_records_of_a_file() -> None:
    assert read_records(SAMPLE) == sample_records()


@pytest.mark.slow
def test_every_kind_of_record_is_compared_with_its_target() -> None:
    """On a quiet machine the rates are 2 times (classic groups) and 6 to 8 times (others) the targets."""
    lines = list(figures(read_records(SAMPLE)))
    measured = [re.search(r"([\d,]+)/s +target +([\d,]+)/s +([\d.]+) x$", line) for line in lines]
    assert [found is not None for found in measured] == [True] * 4, lines
    for rate, target, ratio in (found.groups() for found in measured if found):
        assert float(ratio) == pytest.approx(int(rate.replace(",", "")) / int(target.replace(",", "")), abs=0.06)
