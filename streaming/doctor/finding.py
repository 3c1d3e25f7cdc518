"""The result of one check. If the check was impossible, the result is `not checked`, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Status = Literal["ok", "note", "failed", "not checked"]

OK: Final = "ok"
NOTE: Final = "note"
FAILED: Final = "failed"
NOT_CHECKED: Final = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the check of one point.

    The remedy is optional if the status is `ok` or `not checked`. A note describes a problem that does not stop the
    monitor.
    """

    point: str
    status: Status
    text: str
    remedy: str | None = None


def ok(point: str, text: str) -> Finding:
    """Return a finding with the status `ok`."""
    return Finding(point, OK, text)


def note(point: str, text: str, remedy: str) -> Finding:
    """Return a finding with the status `note`."""
    return Finding(point, NOTE, text, remedy)


def failed(point: str, text: str, remedy: str) -> Finding:
    """Return a finding with the status `failed`."""
    return Finding(point, FAILED, text, remedy)


def not_checked(point: str, reason: str, remedy: str | None = None) -> Finding:
    """Return a finding with the status `not checked`."""
    return Finding(point, NOT_CHECKED, reason, remedy)


def from_error(point: str, error: Exception) -> Finding:
    """Return a failed finding about an error. The text after the last colon of the error message is the remedy.

    >>> from_error("java", ValueError("no java found: set JAVA_HOME"))
    Finding(point='java', status='failed', text='no java found', remedy='set JAVA_HOME')
    """
    text, _, remedy = str(error).rpartition(": ")
    return Finding(point, FAILED, text or remedy, remedy if text else None)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if a point failed, otherwise 0.

    >>> exit_code([note("disk", "8 % free", "free space"), not_checked("rules", "no address of Prometheus")])
    0
    """
    return int(any(finding.status == FAILED for finding in findings))
