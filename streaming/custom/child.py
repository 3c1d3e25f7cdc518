"""The process a user's strategy runs in: ``python -m streaming.custom.child module:attribute limit_seconds``.

It answers groups on standard input with assignments on standard output until the input ends. What the strategy itself
prints goes to standard error, so that it cannot be taken for an answer. A watchdog ends the process where a strategy
passes its limit, and leaves a traceback that says where it was.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import sys
from typing import TYPE_CHECKING

from assignors.model import GroupAssignment
from assignors.what_if.scenario import assignment_as_json
from streaming.custom.frames import read_frame, write_frame
from streaming.custom.loading import AssignorLoadError, load_assignor

if TYPE_CHECKING:
    from typing import BinaryIO

    from assignors.model import PartitionAssignor

MEMORY_BYTES = 2 << 30
"""A strategy that takes more is refused memory, and so fails alone instead of taking the machine with it."""

_STDERR = 2  # the descriptor: a strategy may have put something else in sys.stderr's place


def main(reference: str, limit_seconds: float) -> None:
    """Load the strategy, say whether that went well, and serve."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    try:
        assignor = load_assignor(reference)
    except AssignorLoadError as error:
        _answer(answers, {"error": str(error)})
        return
    _answer(answers, {"name": assignor.name})
    serve(assignor, requests, answers, limit_seconds)


def serve(assignor: PartitionAssignor, requests: BinaryIO, answers: BinaryIO, limit_seconds: float) -> None:
    """Assign one group after the other until there are no more."""
    while (request := read_frame(requests)) is not None:
        group = pickle.loads(request)  # noqa: S301 - from the parent process, which is ours
        faulthandler.dump_traceback_later(limit_seconds, exit=True, file=_STDERR)
        answer: dict[str, object]
        try:
            answer = {"assignment": _as_json(assignor.assign(group))}
        except Exception as error:  # noqa: BLE001 - whatever a user's code raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        faulthandler.cancel_dump_traceback_later()
        _answer(answers, answer)


def _as_json(assignment: object) -> dict[str, list[list[str | int]]]:
    if not isinstance(assignment, GroupAssignment):
        raise TypeError(f"assign returned {type(assignment).__name__}, not GroupAssignment")
    for member_id, partitions in assignment.members.items():
        for topic, number in partitions:
            if not (isinstance(member_id, str) and isinstance(topic, str) and type(number) is int):
                raise TypeError(f"{member_id!r} was given ({topic!r}, {number!r}), not (topic, partition number)")
    return assignment_as_json(assignment)


def _answer(answers: BinaryIO, answer: object) -> None:
    write_frame(answers, json.dumps(answer).encode("ascii"))


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # where the platform cannot, go on without
        import resource  # noqa: PLC0415 - not on every platform

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, most))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the parent went first
        main(sys.argv[1], float(sys.argv[2]))
