"""Test that the systemd unit fits the program: exit codes, folders, and the time to stop."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.settings import PathSettings
from streaming.errors import MAY_PASS, STAYS
from streaming.spark.query import BATCH_GRACE_SECONDS

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "rebalance-monitor.service"
WRONG_ARGUMENTS = 2
"""Click's exit code for wrong arguments."""


def service() -> dict[str, list[str]]:
    """Return the directives of [Service], each with all its values, because some occur more than once."""
    directives: dict[str, list[str]] = defaultdict(list)
    section = UNIT.read_text().split("[Service]")[1].split("[Install]")[0]
    for name, value in re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE):
        directives[name].append(value)
    return directives


def test_systemd_restarts_the_monitor_only_if_a_restart_can_help():
    """A restart loop hides the line that describes the error."""
    directives = service()
    assert directives["Restart"] == ["on-failure"]
    assert {int(code) for code in directives["RestartPreventExitStatus"][0].split()} == {WRONG_ARGUMENTS, STAYS}
    assert MAY_PASS not in {WRONG_ARGUMENTS, STAYS}


def test_the_monitor_has_time_to_finish_its_batch():
    (seconds,) = map(int, service()["TimeoutStopSec"])
    assert seconds >= 2 * BATCH_GRACE_SECONDS + 30


def test_its_state_is_where_the_unit_lets_it_write(monkeypatch: pytest.MonkeyPatch):
    """With ProtectSystem=strict only /var/lib/<StateDirectory> and a private /tmp are writable."""
    directives = service()
    for assignment in directives["Environment"]:
        name, _, value = assignment.partition("=")
        monkeypatch.setenv(name, value)
    (folder,) = directives["StateDirectory"]
    paths = PathSettings()
    assert {Path(paths.checkpoint).parent, Path(paths.tables).parent} == {Path("/var/lib", folder)}
    assert directives["ProtectSystem"] == ["strict"]
    assert directives["DynamicUser"] == ["yes"]


def test_the_unit_starts_the_program_that_the_build_script_creates():
    """The unit's comment, its command and its cache folder must name the same folder."""
    (prefix,) = re.findall(r"deploy/image/build\.sh (\S+)", UNIT.read_text())
    directives = service()
    assert directives["ExecStart"][0].startswith(f"{prefix}/venv/bin/rebalance-monitor run --config /etc/")
    assert f"{ENVIRONMENT_PREFIX}CACHE_DIR={prefix}/cache" in directives["Environment"]


def test_memory_stays_executable_for_the_jvm():
    """With MemoryDenyWriteExecute Java cannot compile methods. With a noexec /tmp RocksDB cannot load its code."""
    directives = service()
    assert "MemoryDenyWriteExecute" not in directives
    assert directives["PrivateTmp"] == ["yes"]
    assert "NoExecPaths" not in directives
