"""What the README promises is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from streaming.cli import main
from streaming.signals import SIGNALS, exported_names
from tests.table_reference import TABLES_MD, table_reference

README = Path(__file__).parents[1] / "README.md"


def test_the_table_reference_is_the_one_the_schemas_give():
    """Regenerate with `python -m tests.table_reference`."""
    assert TABLES_MD.read_text() == table_reference()


def test_every_command_is_in_the_readme():
    """A command nobody can find does not exist."""
    readme = README.read_text()
    assert [name for name in main.list_commands(None) if f"`{name}" not in readme] == []  # type: ignore[arg-type]


def test_every_metric_that_the_readme_names_is_defined():
    """All of them, with their meaning, are in `dashboards/METRICS.md`."""
    named = set(re.findall(r"`((?:rebalance_monitor|kafka_consumergroup|kafka_topic)_[a-z_]+)`", README.read_text()))
    assert named <= {*SIGNALS, *(name for signal in SIGNALS.values() for name in exported_names(signal))}
