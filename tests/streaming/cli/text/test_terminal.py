"""Test tables on terminals of different widths."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.table import Table

import streaming.cli.text.terminal
from streaming.cli.text.terminal import print_tables


@pytest.mark.parametrize("columns", [20, 50, 80, 200])
def test_a_narrow_terminal_shows_every_character(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 50 columns, `compare` printed empty columns. At 80 columns, it cut the names of the columns."""
    monkeypatch.setattr(streaming.cli.text.terminal, "output_console", lambda: Console(width=columns))
    names = [f"imbalance{number}" for number in range(10)]
    table = Table(*names)
    table.add_row(*(f"{number}-of-a-topic" for number in range(10)))
    print_tables(table)
    lines = [line[1:-1].split("│") for line in capsys.readouterr().out.replace("┃", "│").splitlines() if "│" in line]
    shown = ["".join(cells).replace(" ", "") for cells in zip(*lines, strict=True)]
    assert shown == [f"{name}{number}-of-a-topic" for number, name in enumerate(names)]
