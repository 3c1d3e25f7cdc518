"""Run a user's strategy in a separate process: ``python -m streaming.custom.child module:attribute limit_seconds``.

The process reads groups (pickles) from standard input, and writes assignments (lines of JSON) to standard output. The
output of the strategy itself goes to standard error. If a strategy exceeds its time limit, a watchdog writes a
traceback and ends the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import sys
from collections.abc import Iterator
from typing import BinaryIO

from assignors.model import GroupAssignment, GroupSpec, PartitionAssignor
from assignors.what_if.scenario import assignment_as_json
from streaming.custom.loading import AssignorLoadError, load_assignor

MEMORY_BYTES = 2 << 30
"""Maximum memory of the process. If a strategy needs more memory, only its process fails."""

_STDERR = 2  # the file descriptor, because a strategy may have replaced sys.stderr


def main(reference: str, limit_seconds: float) -> None:
    """Load the strategy, and write its name or the error. Then process groups."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    try:
        assignor = load_assignor(reference)
    except AssignorLoadError as error:
        _write_answer(answers, {"error": str(error)})
        return
    _write_answer(answers, {"name": assignor.name})
    serve(assignor, requests, answers, limit_seconds)


def serve(assignor: PartitionAssignor, requests: BinaryIO, answers: BinaryIO, limit_seconds: float) -> None:
    """Read groups until the input ends, and write the assignment of each group."""
    for group in _groups(requests):
        faulthandler.dump_traceback_later(limit_seconds, exit=True, file=_STDERR)
        answer: dict[str, object]
        try:
            answer = {"assignment": _as_json(assignor.assign(group))}
        except Exception as error:  # noqa: BLE001 - a user's code can raise anything, and the parent reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        faulthandler.cancel_dump_traceback_later()
        _write_answer(answers, answer)


def _groups(requests: BinaryIO) -> Iterator[GroupSpec]:
    """Yield each group until the input ends. An incomplete group at the end of the input is ignored."""
    while True:
        try:
            yield pickle.load(requests)  # noqa: S301 - the parent process is trusted
        except (EOFError, pickle.UnpicklingError):  # noqa: PERF203 - once
            return


def _as_json(assignment: object) -> dict[str, list[list[str | int]]]:
    if not isinstance(assignment, GroupAssignment):
        raise TypeError(f"assign returned {type(assignment).__name__}, not GroupAssignment")
    for member_id, partitions in assignment.members.items():
        for topic, number in partitions:
            if not (isinstance(member_id, str) and isinstance(topic, str) and type(number) is int):
                raise TypeError(f"{member_id!r} has ({topic!r}, {number!r}) instead of (topic, partition number)")
    return assignment_as_json(assignment)


def _write_answer(answers: BinaryIO, answer: object) -> None:
    answers.write(json.dumps(answer).encode("ascii") + b"\n")
    answers.flush()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # some platforms have no memory limits
        import resource  # noqa: PLC0415 - not available on every platform

        _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard_limit))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the parent ended first
        main(sys.argv[1], float(sys.argv[2]))
