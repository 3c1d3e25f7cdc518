"""Run checks one after the other, each with a time limit.

A check can hang, for example if the server of a network file system does not answer. Python cannot stop a check that
hangs. So each check runs in a daemon thread, which does not keep the process alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from streaming.doctor.finding import Finding, failed

LIMIT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """A check. If the check exceeds its time limit, the result is a failed finding with `point` and `remedy`."""

    point: str
    findings: Callable[[], Iterable[Finding]]
    remedy: str


def run_checks(checks: Iterable[Check], limit_seconds: float) -> Iterator[Finding]:
    """Yield each finding as soon as it is known.

    If a check exceeds the time limit, continue with the next check. An exception of a check is raised again.
    """
    for check in checks:
        yield from _run(check, limit_seconds)


def _run(check: Check, limit_seconds: float) -> Iterator[Finding]:
    results: SimpleQueue[Finding | Exception | None] = SimpleQueue()

    def work() -> None:
        try:
            for finding in check.findings():
                results.put(finding)
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread of the caller
            results.put(error)
        else:
            results.put(None)

    end = time.monotonic() + limit_seconds
    Thread(target=work, name=f"check of {check.point}", daemon=True).start()
    while True:
        try:
            result = results.get(timeout=max(end - time.monotonic(), 0))
        except Empty:
            yield failed(check.point, f"the check did not end within {limit_seconds:g} s", check.remedy)
            return
        if result is None:
            return
        if isinstance(result, Exception):
            raise result
        yield result
