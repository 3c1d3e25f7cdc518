"""Tests of `make bench` with small sizes that take a minute."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import psutil
import pytest
from click.testing import CliRunner

from tests.bench.run import bench, record_count

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "records"),
    [("2500000", 2_500_000), ("500k", 500_000), ("10m", 10_000_000), ("10M", 10_000_000), ("2.5m", 2_500_000)],
)
def test_a_number_of_records_can_have_a_suffix(given: str, records: int) -> None:
    context = click.Context(bench)
    assert record_count(context, bench.params[3], given) == records


def test_an_invalid_number_of_records_is_rejected_with_an_example() -> None:
    result = CliRunner().invoke(bench, ["--records", "many"])
    assert result.exit_code == 2
    assert "'many' is not a number of records, for example 500k or 10m" in result.output


def _figures(tmp_path: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    java_before = _java_children()
    json_file = tmp_path / "figures.json"
    folder = ["--folder", str(tmp_path / "bench"), "--json", str(json_file)]
    result = CliRunner().invoke(bench, [*folder, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "bench").iterdir()) == [], "the folder is not cleared"
    assert _java_children() <= java_before, "a JVM of the benchmark is still running"
    return {figure["name"]: figure for figure in json.loads(json_file.read_text())["figures"]}


def _java_children() -> set[int]:
    """Return the Java processes of this test process. Brokers of other tests can be among them."""
    return {child.pid for child in psutil.Process().children(recursive=True) if "java" in child.name()}


@pytest.mark.slow
def test_a_small_fill_is_read_and_its_figures_agree_with_each_other(tmp_path: Path) -> None:
    """The run itself checks the lag of every group in /metrics. This test checks that times, rates and ratios agree."""
    figures = _figures(tmp_path, "--part", "catch-up", "--groups", "40", "--partitions", "5", "--rounds", "10")
    first_batch = figures["process start to first batch"]
    all_read = figures["all records read, from process start"]
    rate = figures["first 2,000 records, from the first batch"]
    rate_from_start = figures["first 2,000 records, from process start"]
    complete = figures["first complete /metrics, from process start"]
    for column in ("value", "baseline"):
        assert 0 < first_batch[column] < all_read[column]
        assert rate_from_start[column] == pytest.approx(2_000 / all_read[column])
        assert rate[column] == pytest.approx(2_000 / (all_read[column] - first_batch[column]))
    assert all_read["value"] - 1 < complete["value"]
    restart = figures["restart with the checkpoint until complete /metrics"]
    assert 0 < figures["processor time of the restart"]["value"] < 2 * restart["value"] * (psutil.cpu_count() or 1)
    assert rate["ratio"] == pytest.approx(rate["value"] / rate["baseline"])
    memory = figures["peak memory of all processes (PSS)"]
    assert all(200 < memory[column] < 3_072 for column in ("value", "baseline"))
    assert memory["ratio"] == pytest.approx(memory["value"] / memory["baseline"])
    assert {figure["verdict"] for figure in figures.values()} == {""}, "a target in a run of a different size"


@pytest.mark.slow
def test_rebalances_of_the_demo_are_timed_until_they_are_seen(tmp_path: Path) -> None:
    """The target, 5 s for the 95th percentile of 30, is for a quiet machine. So this test does not check it."""
    figures = _figures(tmp_path, "--part", "rebalances", "--rebalances", "3")
    p50 = figures["rebalance completed to seen, p50 (of 3)"]["value"]
    p95 = figures["rebalance completed to seen, p95"]["value"]
    assert 0 < p50 <= p95


@pytest.mark.slow
def test_synthetic_groups_under_load_are_evaluated_and_their_figures_agree_with_each_other(tmp_path: Path) -> None:
    """The run itself checks every group, every row and every verdict. This test checks that the figures agree.

    A batch starts every 10 s. On a busy machine, no batch ended within 12 s.
    """
    sizes = (
        "--synthetic-groups",
        "40",
        "--commits-per-second",
        "1000",
        "--rebalances-per-minute",
        "120",
        "--load-seconds",
        "20",
    )
    figures = _figures(tmp_path, "--part", "evaluation", *sizes)
    batches, longest, median = (figures[name] for name in ("batches under load", "longest batch", "median batch"))
    for column in ("value", "baseline"):
        assert 1 <= batches[column] <= 3
        assert 0 < median[column] <= longest[column] < 20
    assert figures["commits written, over 20 s"]["value"] == pytest.approx(1_000, rel=0.05)
    assert figures["rebalances written, each with one row and a verdict"]["value"] == pytest.approx(40, abs=3)
    p50, p95 = (
        figures[f"rebalance written to shown{words}"]["value"] for words in (", one scrape per 15 s, p50", ", p95")
    )
    assert 0 < p50 <= p95
    for who in ("processor", "processor, the load", "processor, broker"):
        assert figures[who]["value"] > 0
