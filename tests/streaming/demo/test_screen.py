"""Test the demo's screen at common widths and with unknown values."""

from __future__ import annotations

import io
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from streaming.demo.figures import Figures, GroupFigures, LagCause, Shares
from streaming.demo.groups import DEMO_GROUPS
from streaming.demo.screen import Screen, status_view
from streaming.demo.table import GroupTable

READY = Figures(phase="ready")


def _numbers(kind: type[msgspec.Struct]) -> list[str]:
    """Return the names of the fields that are numbers."""
    return [field.name for field in msgspec.structs.fields(kind) if field.type == int | None]


_NUMBERS, _SHARES = _numbers(GroupFigures), _numbers(Shares)
_KNOWN = GroupFigures(
    "demo-range", "range", "Stable", shares=Shares(**dict.fromkeys(_SHARES, 8)), **dict.fromkeys(_NUMBERS, 8)
)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_figure_fits_beside_its_groups_name(width: int):
    """A lag of a million and, with all columns, the longest name of a strategy are not cut off."""
    long = msgspec.structs.replace(_KNOWN, group_id="demo-cooperative", protocol="cooperative-sticky", lag=999_999)
    lines = _rendered(GroupTable(Figures(groups=[long])), width)
    assert max(map(len, lines)) <= width
    (line,) = [line for line in lines if line.startswith("demo-cooperative")]
    assert "999999" in line
    assert ("cooperative-sticky" in line) == (width >= 100)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_long_name_of_the_users_own_group_does_not_hide_the_figures(width: int):
    """With one name of 250 characters, no row had a figure any more."""
    long = msgspec.structs.replace(_KNOWN, group_id="g" * 250, lag=999_999)
    lines = _rendered(GroupTable(Figures(groups=[long])), width)
    assert max(map(len, lines)) <= width
    (line,) = [line for line in lines if line.startswith("ggg")]
    assert "ggg\N{HORIZONTAL ELLIPSIS}" in line
    assert "999999" in line


@pytest.mark.parametrize("width", [80, 100, 160])
def test_every_group_has_its_description(width: int):
    text = " ".join(" ".join(_rendered(GroupTable(Figures()), width)).split())
    for group in DEMO_GROUPS:
        assert group.group_id in text
        assert group.shows[: width // 2 - 20] in text or width == 160


def test_the_descriptions_are_omitted_on_a_low_terminal():
    assert len(_rendered(GroupTable(Figures(), max_lines=20), 100)) == len(DEMO_GROUPS) + 3
    assert len(_rendered(GroupTable(Figures(), max_lines=30), 100)) == 2 * len(DEMO_GROUPS) + 3


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_cause_of_lag_replaces_the_description_of_its_group(width: int):
    """Issue 15: `demo-hot-key` shows its cause on the screen. Member names can contain escape sequences."""
    cause = LagCause("Hot partition: partition c-2 \x1b[2J receives 8 records/s.")
    figures = Figures(groups=[GroupFigures("demo-hot-key", cause=cause)])
    text = " ".join(" ".join(_rendered(GroupTable(figures), width)).split())
    assert r"cause of lag: Hot partition: partition c-2 \x1b[2J" in text
    assert "most records have one key" not in text


def test_a_wide_terminal_with_few_lines_has_no_column_of_sentences():
    """The sentences in a column need up to three lines per group, so the notes below would not fit on the screen."""
    lines = _rendered(GroupTable(Figures()), 160)
    assert len(_rendered(GroupTable(Figures(), max_lines=len(lines)), 160)) == len(lines)
    assert len(_rendered(GroupTable(Figures(), max_lines=len(lines) - 1), 160)) < len(lines)


def test_the_notes_stay_on_a_screen_of_24_lines():
    """The note on how to stop the demo must always be visible."""
    notes = dict.fromkeys(("pages", "metrics", "tables", "logs", "Kafka", "stop"), "x")
    assert len(_rendered(status_view(1.0, READY, notes, height=24), 100)) <= 24


def _possible_values(names: list[str]) -> st.SearchStrategy[dict[str, int | None]]:
    return st.fixed_dictionaries(dict.fromkeys(names, st.none() | st.integers(0, 10**6)))


@given(_possible_values(_NUMBERS), _possible_values(_SHARES))
def test_only_unknown_values_are_a_question_mark(numbers: dict[str, int | None], shares: dict[str, int | None]):
    """An unknown value is never shown as 0."""
    group = GroupFigures("demo-range", "range", "Stable", shares=Shares(**shares), **numbers)
    (line,) = [line for line in _rendered(GroupTable(Figures(groups=[group])), 120) if "demo-range " in line]
    assert line.count("?") == sum(number is None for number in (*numbers.values(), *shares.values()))


def test_a_group_that_the_monitor_does_not_know_yet_has_only_question_marks():
    (line,) = [line for line in _rendered(GroupTable(Figures()), 120) if line.startswith("demo-idle")]
    assert set(line.split()[1:]) == {"?"}


def test_a_group_outside_the_demo_is_shown_after_the_demos_groups():
    figures = Figures(groups=[GroupFigures("a-group", lag=3)])
    lines = _rendered(GroupTable(figures), 100)
    assert lines[-2].startswith("a-group ")
    assert lines[-1] == "  a group outside the demo"


def test_a_name_with_markup_or_control_characters_is_shown_as_text():
    """A group name can be any UTF-8 text."""
    name = "[bold]x[/] \x1b[2J\n"
    lines = _rendered(GroupTable(Figures(groups=[GroupFigures(name)])), 100)
    assert len(lines) == 2 * (len(DEMO_GROUPS) + 1) + 3
    assert "\x1b" not in "".join(lines)
    assert "[bold]x[/]" in lines[-2]


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        pytest.param(None, "the monitor does not answer", id="a monitor that hangs"),
        pytest.param(Figures(), "not ready", id="a monitor without a broker"),
        pytest.param(READY, "ready", id="a working monitor"),
    ],
)
def test_the_headline_shows_the_state_of_the_monitor(figures: Figures | None, says: str):
    headline = _rendered(status_view(12.0, figures, {}), 100)[0]
    assert headline == f"kafka-rebalance-monitor demo  12 s  {says}"


def test_a_log_file_gets_each_wait_the_first_table_and_the_last_table():
    """Tables in between come every 15 s, so that the log of an hour stays readable."""
    output = io.StringIO()
    with Screen(Console(file=output, width=160), time.monotonic(), {"stop": "Ctrl-C"}) as screen:
        screen.wait_for("the broker to answer")
        for lag in (1, 2, 3):
            screen.show(Figures(phase="ready", groups=[GroupFigures("g", lag=lag)]))
    text = output.getvalue()
    assert text.startswith("   0 s  waiting for the broker to answer\n")
    assert [line.split()[-6] for line in text.splitlines() if line.startswith("g ")] == ["1", "3"]
    assert text.count("Ctrl-C") == 1


def _rendered(renderable: object, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=50, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return [line.rstrip() for line in captured.get().rstrip("\n").splitlines()]
