"""How often a query, or watching a cluster at all, was tried in vain, what was said of it, and how long to wait.

1. Each try that failed shows the cluster as not ready and counts as a restart of its query.
2. A reason is said when it is another than the last one. Only the last is remembered, without what differs each time.
3. Pauses double up to `LONGEST_PAUSE_SECONDS`.
4. Once the cluster was ready, what fails after that is new: it is said again, and pauses are short again.
"""

from __future__ import annotations

import re

from streaming.state.monitor_state import MonitorState

LONGEST_PAUSE_SECONDS = 30.0

_DOUBLINGS = 10
_WORD_WITH_DIGIT = re.compile(r"\w*\d\w*")


class RetryState:
    """One thread's, for one of its two loops: `_Run`'s around a query, or `Monitor`'s around a watch."""

    def __init__(self, monitor_state: MonitorState) -> None:
        self._monitor_state = monitor_state
        self._times_ready = 0
        self._failed = 0
        self._said = ""

    def take_failed(self, error: Exception) -> bool:
        """Take in that a try failed; tells whether that is to be said (rule 2)."""
        health = self._monitor_state.view().health
        self._monitor_state.put_health(ready=False, query_restarts=health.query_restarts + 1)
        if health.times_ready != self._times_ready:
            self._times_ready, self._failed, self._said = health.times_ready, 0, ""
        said, self._said = self._said, reason_of(error)
        self._failed += 1
        return self._said != said

    @property
    def pause_seconds(self) -> float:
        """How long to wait after the last try that failed."""
        return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(self._failed - 1, _DOUBLINGS))


def reason_of(error: Exception) -> str:
    r"""What an error says, without what is another each time it is said.

    Py4J's errors name a call in their first line and its exception in the second; a trace follows. Words with a digit
    are left out: ids of objects and queries, ports, times.

    >>> reason_of(OSError("An error occurred while calling o17.load.\n: No space left\n\tat Load.java:12"))
    'OSError An error occurred while calling .load.\n: No space left'
    """
    first_lines = "\n".join(str(error).splitlines()[:2])
    return f"{type(error).__name__} {_WORD_WITH_DIGIT.sub('', first_lines)}"
