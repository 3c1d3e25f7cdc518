"""Running a user's strategy so that whatever it does, the caller gets an answer: an assignment or what went wrong.

A loop in pure Python cannot be stopped from within its process: no signal or exception reaches it reliably, and a
thread cannot be killed. So the strategy runs in a child process, started once and kept for all groups. A watchdog
inside the child ends it at the limit; should that fail, the parent kills it a moment later.
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
from dataclasses import dataclass, replace
from enum import Enum
from threading import Timer
from typing import TYPE_CHECKING, Any, cast

from assignors.fairness.invariants import violations
from assignors.model import GroupAssignment
from streaming.config.environment import without_settings
from streaming.custom.frames import read_frame, write_frame

if TYPE_CHECKING:
    from types import TracebackType
    from typing import BinaryIO

    from assignors.fairness.invariants import Violation
    from assignors.model import GroupSpec

LIMIT_SECONDS = 10.0
START_LIMIT_SECONDS = 60.0
"""Importing a user's module may take longer than assigning does."""
GRACE_SECONDS = 1.0
MOST_TIMEOUTS = 3
RETRY_EVERY = 100
DETAIL_CHARACTERS = 2000


class FailureReason(str, Enum):
    """Why there is no assignment; the value is the name a report shows."""

    NOT_LOADED = "not_loaded"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"
    UNLAWFUL = "unlawful"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class AssignorFailure:
    """What a strategy did instead of assigning; ``violations`` is filled where its answer breaks the common laws."""

    reason: FailureReason
    detail: str
    violations: tuple[Violation, ...] = ()


class GuardedAssignor:
    """A user's strategy by reference (``module:attribute``), in a process of its own.

    Three time-outs in a row suspend it: then only every hundredth group is tried, as a strategy that always hangs would
    otherwise hold up all groups for the limit each. Not for use by several threads at once. Close it, or use ``with``.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> with GuardedAssignor("assignors.range.range:RangeAssignor") as guarded:
    ...     guarded.try_assign(GroupSpec((Member("A", ("t",)),), {"t": 1}))
    GroupAssignment(members={'A': (('t', 0),)})
    """

    def __init__(self, reference: str, limit_seconds: float = LIMIT_SECONDS) -> None:
        self.reference = reference
        self.limit_seconds = limit_seconds
        self._child: _Child | None = None
        self._timeouts = 0
        self._skipped = 0

    def __enter__(self) -> GuardedAssignor:  # noqa: PYI034 - typing.Self came with Python 3.11
        """Start nothing yet: the child comes with the first group."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the child."""
        self.close()

    def name(self) -> str | AssignorFailure:
        """Ask the strategy for its name."""
        child = self._started()
        return child if isinstance(child, AssignorFailure) else child.name

    def try_assign(self, group: GroupSpec) -> GroupAssignment | AssignorFailure:
        """Assign ``group``, or say what the strategy did instead. Raises nothing, whatever it does."""
        if self._timeouts >= MOST_TIMEOUTS and self._skipped < RETRY_EVERY - 1:
            self._skipped += 1
            return AssignorFailure(FailureReason.SUSPENDED, f"timed out {self._timeouts} times in a row")
        self._skipped = 0
        outcome = self._ask(group)
        timed_out = isinstance(outcome, AssignorFailure) and outcome.reason is FailureReason.TIMED_OUT
        self._timeouts = self._timeouts + 1 if timed_out else 0
        return _evaluated(group, outcome) if isinstance(outcome, GroupAssignment) else outcome

    def close(self) -> None:
        """End the child, if there is one; a later group starts another."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _ask(self, group: GroupSpec) -> GroupAssignment | AssignorFailure:
        child = self._started()
        if isinstance(child, AssignorFailure):
            return child
        plain = replace(
            group, partitions=dict(group.partitions), racks=dict(group.racks), lag_records=dict(group.lag_records)
        )
        answer = child.ask(pickle.dumps(plain), self.limit_seconds + GRACE_SECONDS)
        if answer is None:
            failure = child.failure()
            self.close()
            return failure
        if "error" in answer:
            return AssignorFailure(FailureReason.RAISED, answer["error"])
        assigned = answer["assignment"].items()
        return GroupAssignment(
            {member_id: tuple((topic, number) for topic, number in partitions) for member_id, partitions in assigned}
        )

    def _started(self) -> _Child | AssignorFailure:
        if self._child is None or self._child.overdue:
            self.close()
            child = _Child(self.reference, self.limit_seconds)
            answer = child.ask(None, START_LIMIT_SECONDS)
            if answer is None or "error" in answer:
                failure = (
                    child.failure() if answer is None else AssignorFailure(FailureReason.NOT_LOADED, answer["error"])
                )
                child.end()
                return replace(failure, reason=FailureReason.NOT_LOADED)
            child.name = answer["name"]
            self._child = child
        return self._child


class _Child:
    """The process; it says something once after its start and once after each request."""

    def __init__(self, reference: str, limit_seconds: float) -> None:
        self.name = reference
        # Not a pipe, which would fill up; appended to, so that it can be emptied under the child's feet.
        self._stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed in end()
        self.overdue = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streaming.custom.child", reference, str(limit_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**without_settings(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # so that what the strategy itself starts can be ended with it
        )
        self._requests = cast("BinaryIO", self._process.stdin)
        self._answers = cast("BinaryIO", self._process.stdout)

    def ask(self, request: bytes | None, limit_seconds: float) -> dict[str, Any] | None:
        """Send a request, if any, and wait for the answer; None if the child ended or had to be ended instead."""
        self._stderr.truncate(0)
        deadline = Timer(limit_seconds, self._kill_overdue)
        deadline.start()
        try:
            if request is not None:
                write_frame(self._requests, request)
            body = read_frame(self._answers)
            return None if body is None else json.loads(body)
        except (OSError, ValueError):
            return None
        finally:
            deadline.cancel()

    def failure(self) -> AssignorFailure:
        """Say how the child ended; its last words are the watchdog's traceback where it was too slow."""
        self._await_exit()
        self._kill()
        self._stderr.seek(0)
        words = self._stderr.read().decode("utf-8", "replace")[-DETAIL_CHARACTERS:]
        if self.overdue or "Timeout (" in words:
            return AssignorFailure(FailureReason.TIMED_OUT, words)
        return AssignorFailure(FailureReason.DIED, f"exit code {self._process.returncode}: {words}")

    def end(self) -> None:
        self._kill()
        for stream in (self._requests, self._answers, self._stderr):
            with contextlib.suppress(OSError):  # what was left to flush has no reader any more
                stream.close()

    def _await_exit(self) -> None:
        """Let a child that closed its output come to its own end, for the exit code; it is not waited for yet.

        As long as it is not, its id is its own, and ``_kill`` reaches what the strategy itself started.
        """
        for _ in range(100):
            if self._process.returncode is not None or os.waitid(
                os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
            ):
                return
            time.sleep(GRACE_SECONDS / 100)

    def _kill_overdue(self) -> None:
        self.overdue = True
        self._kill()

    def _kill(self) -> None:
        if self._process.returncode is None:  # once it is waited for, its id may be another's
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _evaluated(group: GroupSpec, assignment: GroupAssignment) -> GroupAssignment | AssignorFailure:
    broken = violations(group, assignment)
    if not broken:
        return assignment
    return AssignorFailure(FailureReason.UNLAWFUL, broken[0].detail, tuple(broken))
