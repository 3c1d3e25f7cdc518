"""Test that `make release-check` fails if a step fails. The check itself runs outside `make test`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.release_check import _Check, _install, _stable_groups, main

TABLE = """\
kafka-rebalance-monitor demo  70 s  ready

demo-range       range              Stable       3    0      1      1      16      5     0   32 range assigns each …
demo-sticky      sticky        Rebalancing       3    0      1      1       6      0     0   10 sticky: each member …
"""


def test_only_the_last_table_of_the_demo_counts():
    """A group that was Stable in an earlier table must still be Stable at the end."""
    earlier = TABLE.replace("Rebalancing", "     Stable")
    assert _stable_groups(earlier) == {"demo-range", "demo-sticky"}
    assert _stable_groups(earlier + TABLE) == {"demo-range"}
    assert _stable_groups("waiting for the monitor") == set()


def test_a_failed_step_ends_the_check_with_its_command_and_output():
    done = CliRunner().invoke(main, ["--python", "/nowhere/python"])
    assert done.exit_code == 1
    assert "/nowhere/python: build the wheel\n" in done.output
    assert "/nowhere/python: No such file or directory" in done.output
    assert "deploy/image/wheel.sh" in done.output.splitlines()[-1]
    assert done.output.endswith("ended with code 127\n")


def test_a_missing_java_is_reported_before_the_first_step():
    done = CliRunner().invoke(main, ["--java-home", "/nowhere"])
    assert done.exit_code == 1
    assert done.output.startswith("Error: /nowhere/bin/java does not run")


def test_the_demo_runs_from_an_environment_into_which_only_the_wheel_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Before, the packages of requirements.lock were always installed first. A user may install only the wheel."""
    ran: list[str] = []

    def record(_: _Check, command: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> None:  # noqa: ARG001
        ran.append(" ".join(map(str, command)))

    monkeypatch.setattr(_Check, "run", record)
    program = _install(_Check(tmp_path, time.monotonic()), "python3", Path("monitor.whl"))
    environment = program.parents[1]
    installs = [
        one.partition(" install ")[2] for one in ran if one.startswith(f"{environment}/") and " install " in one
    ]
    assert installs == ["--no-compile monitor.whl"]
    assert [one for one in ran if "--require-hashes" in one and not one.startswith(f"{environment}/")]
