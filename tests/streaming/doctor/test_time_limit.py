"""Tests that a check which hangs is reported, and that the other checks still run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.doctor.finding import FAILED, Finding, failed, ok
from streaming.doctor.time_limit import Check, run_checks
from streaming.embedded.ports import free_port

GOOD = ok("java", "version 17")
_WITH_A_SHORT_LIMIT = """
import streaming.doctor.checkup as checkup
from streaming.cli import main
checkup.LIMIT_SECONDS = 10.0
main(["doctor"])
"""


def hanging() -> Iterator[Finding]:
    """Yield one finding, and never end."""
    yield GOOD
    Event().wait()


def test_a_check_that_hangs_keeps_its_findings_and_the_next_check_runs() -> None:
    """The server of a network file system does not answer. The user needs the results of all other checks."""
    checks = [Check("brokers", hanging, "check the network"), Check("java", lambda: [GOOD], "reinstall")]
    found = list(run_checks(checks, 0.2))
    assert found == [GOOD, failed("brokers", "the check did not end within 0.2 s", "check the network"), GOOD]


def test_a_slow_reader_of_the_findings_is_no_reason_to_report_a_time_limit() -> None:
    """The output is piped into a pager. All findings exist when the reader asks for the next one."""
    reader = run_checks([Check("java", lambda: [GOOD, GOOD], "reinstall")], 0.2)
    first = next(reader)
    Event().wait(0.3)
    assert [first, *reader] == [GOOD, GOOD]


def test_an_error_of_a_check_is_not_lost() -> None:
    """An error in a thread would only be printed, and the check would look complete."""

    def broken() -> Iterator[Finding]:
        raise LookupError("a defect of the check")
        yield

    with pytest.raises(LookupError, match="a defect"):
        list(run_checks([Check("java", broken, "reinstall")], 5))


def test_the_command_ends_although_a_check_hangs(tmp_path: Path) -> None:
    """A named pipe in place of a log entry blocks its reader like a network file system that does not answer."""
    log = tmp_path / "tables" / "rebalances" / "_delta_log"
    log.mkdir(parents=True)
    os.mkfifo(log / f"{0:020}.json")
    settings = {
        "KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
        "KAFKA__CONNECT_TIMEOUT_SECONDS": "1",
        "PATHS__TABLES": str(tmp_path / "tables"),
        "PATHS__CHECKPOINT": str(tmp_path / "checkpoint"),
    }
    environment = os.environ | {f"{ENVIRONMENT_PREFIX}{name}": value for name, value in settings.items()}
    command = [sys.executable, "-c", _WITH_A_SHORT_LIMIT]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    lines = ran.stdout.splitlines()
    hung = f"{FAILED:<11}  tables: the check did not end within 10 s"
    assert (ran.returncode, lines.count(hung), ran.stderr) == (1, 1, ""), ran.stdout
    later = lines[lines.index(hung) + 1 :]
    assert any(line.startswith("ok           checkpoint: ") for line in later)
    assert any(line.startswith("failed       brokers: no broker at ") for line in later)
    assert any(line.startswith("not checked  alert rules: ") for line in later)
