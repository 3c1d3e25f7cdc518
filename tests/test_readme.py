"""Tests that commands, metrics and tables in the documents agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

from streaming.cli import main
from streaming.signals import SIGNALS, exported_names
from tests.table_reference import TABLES_MD, table_reference

README = Path(__file__).parents[1] / "README.md"


def test_the_table_reference_agrees_with_the_schemas():
    """`python -m tests.table_reference` writes the reference again."""
    assert TABLES_MD.read_text() == table_reference()


def test_every_command_is_in_the_readme():
    """Users find commands in the README."""
    readme = README.read_text()
    assert [name for name in main.list_commands(None) if f"`{name}" not in readme] == []  # type: ignore[arg-type]


def test_every_metric_that_the_readme_names_is_defined():
    """All metrics are described in `dashboards/METRICS.md`."""
    named = set(re.findall(r"`((?:rebalance_monitor|kafka_consumergroup|kafka_topic)_[a-z_]+)`", README.read_text()))
    assert named <= {*SIGNALS, *(name for signal in SIGNALS.values() for name in exported_names(signal))}
