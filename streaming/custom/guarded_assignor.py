"""Run a user's strategy so that the caller always gets an assignment, or an error with a reason.

A process cannot reliably stop an endless loop in its own Python code. Signals and exceptions do not always interrupt
the loop, and a thread cannot be killed. So the strategy runs in a child process, which is started once for all groups.
A watchdog in the child ends the child at the time limit. If the watchdog fails, the parent kills the child one second
later.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from enum import Enum
from threading import Timer
from typing import Any, BinaryIO, cast

from assignors.fairness.invariants import violations
from assignors.model import AssignorFailedError, GroupAssignment, GroupSpec
from streaming.config.environment import without_settings

LIMIT_SECONDS = 10.0
START_LIMIT_SECONDS = 60.0
"""Time limit for the start of the child process. It is longer, because the import of a user's module can be slow."""
GRACE_SECONDS = 1.0
MAX_SLOW_FAILURES = 3
RETRY_EVERY = 100
DETAIL_CHARACTERS = 2000


class FailureReason(str, Enum):
    """The reason why there is no assignment. Users see the value."""

    NOT_LOADED = "not_loaded"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"
    UNLAWFUL = "unlawful"
    SUSPENDED = "suspended"


_SLOW_FAILURES = {FailureReason.TIMED_OUT, FailureReason.NOT_LOADED}
"""NOT_LOADED is also slow, because each try starts a process and can take `START_LIMIT_SECONDS`."""


class GuardedAssignor:
    """A user's strategy with the reference ``module:attribute``. The interface is the same as for built-in strategies.

    The strategy runs in a separate process. Each error is an AssignorFailedError, and its `reason` is a FailureReason.
    If the strategy cannot be loaded, the error is one line of text that contains the reference. After three consecutive
    timeouts or failed loads, the strategy receives only every hundredth group. So a strategy that always hangs delays
    only these groups. Do not use this object from several threads at the same time. Close the object after use.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> with contextlib.closing(GuardedAssignor("assignors.range.range:RangeAssignor")) as guarded:
    ...     guarded.assign(GroupSpec((Member("A", ("t",)),), {"t": 1}))
    GroupAssignment(members={'A': (('t', 0),)})
    """

    def __init__(self, reference: str, limit_seconds: float = LIMIT_SECONDS, name: str = "") -> None:
        """If `name` is empty, the name comes from the loaded strategy."""
        self.reference = reference
        self.limit_seconds = limit_seconds
        self._name = name
        self._child: _Child | None = None
        self._slow_failures = 0
        self._skipped_groups = 0

    @property
    def name(self) -> str:
        """The name of the strategy. Raises AssignorFailedError if the strategy cannot be loaded."""
        if not self._name:
            self._start_child()
        return self._name

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Compute the assignment. Raises AssignorFailedError if there is no valid assignment within the time limit."""
        try:
            return self._assign(group)
        except AssignorFailedError as failed:
            detail = f"{self._name or self.reference} {failed.reason}: {failed}"
            raise AssignorFailedError(failed.reason, detail) from None

    def close(self) -> None:
        """End the child process if it runs. For the next group, a new process starts."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _assign(self, group: GroupSpec) -> GroupAssignment:
        if self._slow_failures >= MAX_SLOW_FAILURES and self._skipped_groups < RETRY_EVERY - 1:
            self._skipped_groups += 1
            times = f"{self._slow_failures} times in a row"
            raise _failure(FailureReason.SUSPENDED, f"timed out or could not be loaded {times}")
        self._skipped_groups = 0
        try:
            assignment = self._request_assignment(group)
        except AssignorFailedError as failed:
            self._slow_failures = self._slow_failures + 1 if failed.reason in _SLOW_FAILURES else 0
            raise
        self._slow_failures = 0
        if broken_rules := violations(group, assignment):
            raise _failure(FailureReason.UNLAWFUL, broken_rules[0].detail)
        return assignment

    def _request_assignment(self, group: GroupSpec) -> GroupAssignment:
        child = self._start_child()
        plain_group = replace(
            group, partitions=dict(group.partitions), racks=dict(group.racks), lag_records=dict(group.lag_records)
        )
        answer = child.ask(pickle.dumps(plain_group), self.limit_seconds + GRACE_SECONDS)
        if answer is None:
            failure = child.failure()
            self.close()
            raise failure
        if "error" in answer:
            raise _failure(FailureReason.RAISED, answer["error"])
        members = answer["assignment"].items()
        return GroupAssignment(
            {member_id: tuple((topic, number) for topic, number in partitions) for member_id, partitions in members}
        )

    def _start_child(self) -> _Child:
        """Return the child process, and start it if it does not run. Raises AssignorFailedError."""
        if self._child is None or self._child.is_overdue:
            self.close()
            child = _Child(self.reference, self.limit_seconds)
            answer = child.ask(None, START_LIMIT_SECONDS)
            if answer is None or "error" in answer:
                if answer is None:
                    failure, limit = child.failure(), f"{START_LIMIT_SECONDS:g} s"
                    end = f"did not end within {limit}" if child.is_overdue else f"ended its process: {failure}"
                    answer = {"error": f"{self.reference}: the import {end}"}
                child.end()
                raise _failure(FailureReason.NOT_LOADED, " ".join(answer["error"].split()))
            self._name = self._name or answer["name"]
            self._child = child
        return self._child


def _failure(reason: FailureReason, detail: str) -> AssignorFailedError:
    return AssignorFailedError(reason.value, detail.strip())


class _Child:
    """The child process. The child writes one line after its start, and one line after each request."""

    def __init__(self, reference: str, limit_seconds: float) -> None:
        # A file, because a pipe could fill up. The child appends, so that the parent can truncate the file.
        self._stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed in end()
        self.is_overdue = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streaming.custom.child", reference, str(limit_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**without_settings(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # so that `_kill` also ends the processes that the strategy started
        )
        self._requests = cast(BinaryIO, self._process.stdin)
        self._answers = cast(BinaryIO, self._process.stdout)

    def ask(self, request: bytes | None, limit_seconds: float) -> dict[str, Any] | None:
        """Send the request if it is not None. Return the child's next complete message, or None if the child ended."""
        self._stderr.truncate(0)
        deadline = Timer(limit_seconds, self._kill_overdue)
        deadline.start()
        try:
            if request is not None:
                self._requests.write(request)
                self._requests.flush()
            line = self._answers.readline()
            return json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        finally:
            deadline.cancel()

    def failure(self) -> AssignorFailedError:
        """Return the reason why the child ended. After a timeout, its output contains the watchdog's traceback."""
        self._await_exit()
        self._kill()
        self._stderr.seek(0)
        output = self._stderr.read().decode("utf-8", "replace")[-DETAIL_CHARACTERS:]
        if self.is_overdue or "Timeout (" in output:
            return _failure(FailureReason.TIMED_OUT, output)
        return _failure(FailureReason.DIED, f"exit code {self._process.returncode}" + (output and f": {output}"))

    def end(self) -> None:
        self._kill()
        for stream in (self._requests, self._answers, self._stderr):
            with contextlib.suppress(OSError):  # the child has ended, so buffered bytes cannot be sent
                stream.close()

    def _await_exit(self) -> None:
        """Wait a short time until the exit code of a child that has closed its output is known.

        The function does not reap the child. So the kernel cannot give the process id to a different process.
        """
        try:
            for _ in range(100):
                if self._process.returncode is not None or os.waitid(
                    os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
                ):
                    return
                time.sleep(GRACE_SECONDS / 100)
        except ChildProcessError:  # the timer thread killed and reaped the child at the same moment
            self._process.wait()

    def _kill_overdue(self) -> None:
        self.is_overdue = True
        self._kill()

    def _kill(self) -> None:
        if self._process.returncode is None:  # after wait(), a different process may have this id
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
