"""Count failed attempts to run a query or to watch a cluster. Decide which failures are logged, and how long to wait.

1. After each failed attempt, the cluster is not ready, and the number of query restarts increases.
2. The reason of a failure is logged if it differs from the reason of the previous failure. Before the comparison, ids,
   ports and times are removed from both reasons.
3. Each pause is twice as long as the previous pause, up to `LONGEST_PAUSE_SECONDS`.
4. If the cluster became ready after the previous failure, the next failure is logged, and the pauses start at one
   second again.
"""

from __future__ import annotations

import re

from streaming.state.monitor_state import MonitorState

LONGEST_PAUSE_SECONDS = 30.0

_DOUBLINGS = 10
_WORD_WITH_DIGIT = re.compile(r"\w*\d\w*")


class RetryState:
    """The failed attempts of one loop of QueryKeeper or Monitor. Only the thread of the loop uses this object."""

    def __init__(self, monitor_state: MonitorState) -> None:
        self._monitor_state = monitor_state
        self._times_ready = 0
        self._failed = 0
        self._reported = ""

    def record_failure(self, error: Exception) -> bool:
        """Record a failed attempt. Return True if the reason of the failure is new and must be logged (rule 2)."""
        health = self._monitor_state.view().health
        self._monitor_state.put_health(ready=False, query_restarts=health.query_restarts + 1)
        if health.times_ready != self._times_ready:
            self._times_ready, self._failed, self._reported = health.times_ready, 0, ""
        reported, self._reported = self._reported, reason_of(error)
        self._failed += 1
        return self._reported != reported

    @property
    def pause_seconds(self) -> float:
        """The pause after the last failed attempt, in seconds."""
        return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(self._failed - 1, _DOUBLINGS))


def reason_of(error: Exception) -> str:
    r"""Return the text of an error without the stack trace, and without words that contain a digit (ids, ports, times).

    A Py4J error has the call in the first line, the exception in the second line, and a stack trace in the other lines.

    >>> reason_of(OSError("An error occurred while calling o17.load.\n: No space left\n\tat Load.java:12"))
    'OSError An error occurred while calling .load.\n: No space left'
    """
    first_lines = "\n".join(str(error).splitlines()[:2])
    return f"{type(error).__name__} {_WORD_WITH_DIGIT.sub('', first_lines)}"
