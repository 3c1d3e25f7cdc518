"""The monitor's own memory is told while its processes come and go."""

from __future__ import annotations

import subprocess
import sys

import psutil

from streaming.sinks.health_families import own_processes, resident_bytes


def test_a_process_that_ends_in_the_middle_of_a_scrape_spoils_nothing() -> None:
    """Seen in the benchmark: an idle Spark worker ended between listing and asking, and /metrics answered 500."""
    child = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    listed = own_processes()
    assert child.pid in {process.pid for process in listed}
    child.communicate(b"\n")
    assert 0 < resident_bytes(listed) <= resident_bytes([psutil.Process()]) * 1.5
