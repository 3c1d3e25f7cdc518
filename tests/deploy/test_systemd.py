"""The unit fits the program it starts: exit codes, folders, and the time it takes to stop."""

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
"""Click's exit code."""


def service() -> dict[str, list[str]]:
    """The directives of [Service], each with all its values: some stand more than once."""
    directives: dict[str, list[str]] = defaultdict(list)
    section = UNIT.read_text().split("[Service]")[1].split("[Install]")[0]
    for name, value in re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE):
        directives[name].append(value)
    return directives


def test_it_is_started_again_only_where_that_can_help():
    """A restart loop hides the one line that says what is wrong."""
    directives = service()
    assert directives["Restart"] == ["on-failure"]
    assert {int(code) for code in directives["RestartPreventExitStatus"][0].split()} == {WRONG_ARGUMENTS, STAYS}
    assert MAY_PASS not in {WRONG_ARGUMENTS, STAYS}


def test_it_may_finish_its_batch_before_it_is_killed():
    (seconds,) = map(int, service()["TimeoutStopSec"])
    assert seconds >= 2 * BATCH_GRACE_SECONDS + 30


def test_its_state_is_where_the_unit_lets_it_write(monkeypatch: pytest.MonkeyPatch):
    """ProtectSystem=strict leaves it /var/lib/<StateDirectory> and a /tmp of its own."""
    directives = service()
    for assignment in directives["Environment"]:
        name, _, value = assignment.partition("=")
        monkeypatch.setenv(name, value)
    (folder,) = directives["StateDirectory"]
    paths = PathSettings()
    assert {Path(paths.checkpoint).parent, Path(paths.tables).parent} == {Path("/var/lib", folder)}
    assert directives["ProtectSystem"] == ["strict"]
    assert directives["DynamicUser"] == ["yes"]


def test_it_starts_what_the_build_script_makes():
    """The same folder in the unit's comment, in its command and for its jars."""
    (prefix,) = re.findall(r"deploy/image/build\.sh (\S+)", UNIT.read_text())
    directives = service()
    assert directives["ExecStart"][0].startswith(f"{prefix}/venv/bin/rebalance-monitor run --config /etc/")
    assert f"{ENVIRONMENT_PREFIX}CACHE_DIR={prefix}/cache" in directives["Environment"]


def test_memory_stays_executable_for_the_jvm():
    """MemoryDenyWriteExecute ends Java at its first compiled method; a noexec /tmp ends RocksDB."""
    directives = service()
    assert "MemoryDenyWriteExecute" not in directives
    assert directives["PrivateTmp"] == ["yes"]
    assert "NoExecPaths" not in directives
