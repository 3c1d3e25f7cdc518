"""Tests that commands, metrics and tables in the documents agree with the code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from streaming.cli import main
from streaming.signals import SIGNALS, exported_names
from tests.streaming.cli.test_history import LIFE, rows_of, tables_with
from tests.table_reference import TABLES_MD, table_reference

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


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


def test_the_commands_that_read_a_table_work(tmp_path: Path):
    """The tables of the demo have a group with the name in the command. Here, they come from the same code."""
    tables_with(tmp_path / ".demo" / "tables", *rows_of(LIFE, "demo-flapping"))
    programs = {
        ".venv/bin/python": [sys.executable],
        ".venv/bin/rebalance-monitor": [sys.executable, "-m", "streaming.cli"],
    }
    outputs = []
    for command in re.findall(r"`(\.venv/bin/[^`]+)`", README.read_text()):
        program, *arguments = shlex.split(command)
        words, variables = [*programs[program], *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout)
    table, history = outputs
    assert "| member_gone   |" in table
    assert "generation 1: seen for the first time; 2 members" in history
