"""Test that the systemd unit fits the program: exit codes, permissions, and the time to stop."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

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


def test_the_service_has_its_own_user_and_writes_only_to_its_state_and_a_private_tmp():
    """`rebuild` needs the user while the service is stopped. A dynamic user (DynamicUser) does not exist then."""
    directives = service()
    assert directives["ProtectSystem"] == ["strict"]
    assert directives["User"] == directives["Group"] == ["rebalance-monitor"]
    assert "DynamicUser" not in directives
    assert "ReadWritePaths" not in directives


def test_memory_stays_executable_for_the_jvm():
    """With MemoryDenyWriteExecute Java cannot compile methods. With a noexec /tmp RocksDB cannot load its code."""
    directives = service()
    assert "MemoryDenyWriteExecute" not in directives
    assert directives["PrivateTmp"] == ["yes"]
    assert "NoExecPaths" not in directives
