"""A stop signal stops the process, also at the worst moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

AT_THE_WORST_MOMENT = """
import signal
from streaming.stop_signals import stop_event
stop = stop_event()
with stop._cond:  # as in the middle of `wait` and `set`
    signal.raise_signal(signal.{stop_signal})
    signal.raise_signal(signal.SIGTERM)
print(stop.wait(20))
"""


@pytest.mark.parametrize("stop_signal", ["SIGTERM", "SIGINT"])
def test_a_signal_while_the_main_thread_holds_the_lock_of_the_event_stops_the_process(stop_signal: str) -> None:
    """`timeout 900 rebalance-monitor run` sent two signals within microseconds, and the monitor ran on forever.

    The handler called `set` while an earlier `set` held the lock of the event. The same could happen with one signal,
    during `wait`.
    """
    command = [sys.executable, "-c", AT_THE_WORST_MOMENT.format(stop_signal=stop_signal)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == ("True\n", 0), ended.stderr
