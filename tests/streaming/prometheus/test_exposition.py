"""Tests of the exposition: lines of samples under the HELP and TYPE lines of their families."""

from __future__ import annotations

import doctest
import gc
from contextlib import nullcontext

import pyarrow as pa
import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

import streaming.prometheus.exposition
from streaming.prometheus.exposition import exposition, garbage_collection_paused
from streaming.signals.monitor import READY, STATE_ROWS


def test_lines_of_several_clusters_are_in_one_family() -> None:
    """Prometheus refuses a family that appears twice."""
    pieces = [
        b'rebalance_monitor_ready{cluster="a"} 1.0\n',
        pa.py_buffer(b'rebalance_monitor_ready{cluster="b"} 0.0\n'),
    ]
    text = b"".join(exposition([(READY, pieces)], generate_latest)).decode()
    assert text.count("# HELP") == text.count("# TYPE") == 1
    assert text.splitlines()[2:] == [
        'rebalance_monitor_ready{cluster="a"} 1.0',
        'rebalance_monitor_ready{cluster="b"} 0.0',
    ]


@pytest.mark.parametrize("empty_pieces", [[], [b""], [b"", pa.py_buffer(b"")]])
def test_a_family_without_a_sample_is_left_out(empty_pieces: list[bytes]) -> None:
    assert exposition([(READY, empty_pieces), (STATE_ROWS, empty_pieces)], generate_latest) == []
    assert exposition([(READY, empty_pieces)], generate_openmetrics) == [b"# EOF\n"]


@pytest.mark.parametrize("fails", [False, True])
def test_garbage_collection_is_paused_only_during_a_scrape(*, fails: bool) -> None:
    """A failed scrape also ends the pause."""
    with pytest.raises(OSError, match="no memory") if fails else nullcontext(), garbage_collection_paused():
        assert not gc.isenabled()
        if fails:
            raise OSError("no memory figures")
    assert gc.isenabled()


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.prometheus.exposition).failed == 0
