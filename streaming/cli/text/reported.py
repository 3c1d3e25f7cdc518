"""Creates table cells from the values that only a running monitor knows, for example the lag of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streaming.cli.text.terminal import escape_text

UNKNOWN = "?"
_COLUMNS = ("lag", "cause of lag")
_VERBOSE_COLUMNS = (
    "last commit",
    "consumed/s",
    "produced/s",
    "catches up in",
    "leader",
    "session timeout",
    "rebalance timeout",
)


def reported_columns(*, verbose: bool) -> Sequence[str]:
    """Return the titles of the columns with the values of the running monitor."""
    return (*_COLUMNS, *_VERBOSE_COLUMNS) if verbose else _COLUMNS


def reported_cells(group: Mapping[str, Any] | None, *, verbose: bool) -> list[str]:
    """Return the cells of one group, in the order of `reported_columns`.

    `group` is the group's JSON from the API, or None if the monitor does not know the group.
    """
    if group is None:
        return [UNKNOWN] * len(reported_columns(verbose=verbose))
    from streaming.page.rendering import amount, catch_up, utc, whole  # noqa: PLC0415 - slow to import

    lag, consumed, produced = (group[name] for name in ("lag", *_RATES))
    cells = [whole(lag), _cause(group.get("cause"))]
    if verbose:
        cells += [utc(group["last_commit_ms"]), amount(consumed), amount(produced)]
        cells.append(catch_up(lag, consumed, produced, group["catch_up_seconds"]))
        cells += [_leader(group["leader"]), *(_timeouts(group[f"{kind}_timeouts_ms"]) for kind in _KINDS)]
    return cells


_RATES = ("consumed_records_per_second", "produced_records_per_second")
_KINDS = ("session", "rebalance")


def _cause(cause: Mapping[str, Any] | None) -> str:
    """Return the cause of lag and the advice.

    The text is empty if the monitor reports no cause of lag.
    """
    return "" if cause is None else escape_text(" ".join(filter(None, (cause["text"], cause["advice"]))))


def _leader(leader: Mapping[str, Any] | None) -> str:
    return UNKNOWN if leader is None else escape_text(f"{leader['client_id']} {leader['client_host']}".strip())


def _timeouts(timeouts_ms: Sequence[int]) -> str:
    from streaming.page.rendering import duration  # noqa: PLC0415 - slow to import

    return ", ".join(duration(timeout_ms / 1000) for timeout_ms in timeouts_ms) or UNKNOWN
