"""A row of the table `rebalances` in a describe_rebalance: when nobody has time to read its columns.

Names are as the group's members gave them: whoever prints them makes them safe first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from streaming.combine import gaps
from streaming.evaluation.phrases import counted
from streaming.evaluation.rebalances import rebalances as words
from streaming.evaluation.rebalances.member_changes import JOINED, REJOINED, RESUBSCRIBED, GONE
from streaming.group.members import member_name
from streaming.group.snapshot import BROKER

Row = Mapping[str, Any]
"""A row of `rebalances`, by column."""

MOST_NAMED = 3
_GOES_ON = frozenset({words.UPGRADED, words.DOWNGRADED})
_WHOLE_GROUP = {
    words.METADATA_CHANGED: "more or fewer partitions of a subscribed topic are assigned than before",
    words.COOPERATIVE_FOLLOWUP: "the next round of a cooperative rebalance",
    words.UNEXPLAINED: "no record says why",
}
_WHAT_MEMBERS_DID = {
    words.MEMBER_GONE: (GONE, "is gone", "are gone"),
    words.MEMBER_JOINED: (JOINED, "joined", "joined"),
    words.SUBSCRIPTION_CHANGED: (RESUBSCRIBED, "subscribes anew", "subscribe anew"),
}
_KINDS = {
    words.FIRST_SEEN: "seen for the first time",
    words.CREATED: "created anew",
    words.DELETED: "deleted",
    words.UPGRADED: "upgraded to the consumer protocol (KIP-848)",
    words.DOWNGRADED: "downgraded to the classic protocol",
}
_NOBODY_COMMITTED = {
    gaps.NEXT_REBALANCE: "nobody committed before the next rebalance",
    gaps.ROUND_PASSED: "nobody committed for a whole round (evaluation.stuck_after_seconds)",
    gaps.GROUP_DELETED: "nobody committed before the group was deleted",
}


def without_upgrade_tombstones(rows: Sequence[Row]) -> Sequence[Row]:
    """Leave out the tombstone of a group that goes on under another protocol: it is no end.

    >>> [row["kind"] for row in without_upgrade_tombstones([{"kind": "deleted"}, {"kind": "upgraded"}, {"kind": "deleted"}])]
    ['upgraded', 'deleted']
    """
    over = [now["kind"] == words.DELETED and after["kind"] in _GOES_ON for now, after in pairwise(rows)]
    return [row for row, is_left_out in zip(rows, [*over, False], strict=True) if not is_left_out] if rows else ()


def with_commit_gaps(rows: Sequence[Row], of_gaps: Sequence[Row]) -> Sequence[Row]:
    """Rows of `rebalances`, each with its row of `commit_gaps` as `commit_gap`; None where there is none (yet).

    >>> rebalance = {"cluster": "prod", "offsets_topic_partition": 3, "offsets_topic_offset": 17}
    >>> with_commit_gaps([rebalance], [{**rebalance, "commit_gap_ms": 12_000}])[0]["commit_gap"]["commit_gap_ms"]
    12000
    """
    by_position = {_position(gap): gap for gap in of_gaps}
    return [{**row, "commit_gap": by_position.get(_position(row))} for row in rows]


def _position(row: Row) -> tuple[str, int, int]:
    return row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def describe_rebalance(row: Row) -> str:
    """One row of `rebalances` in words.

    >>> pod = {"group_instance_id": "pod-1", "client_id": "app", "client_host": "/10.4.5.98", "changes": ["rejoined"]}
    >>> describe_rebalance({"kind": "static_rejoin", "changes": [pod]})
    'static member pod-1 rejoined under a new member id; no rebalance'
    """
    if row["kind"] == words.STATIC_REJOIN:
        noun = "static member" if len(_that(row, REJOINED)) == 1 else "static members"
        return f"{noun} {_named(row, REJOINED)} rejoined under a new member id; no rebalance"
    if row["kind"] == words.BECAME_EMPTY:
        return "; ".join([*_why(row), "the group is empty", *_skipped(row)])
    if row["kind"] == words.DELETED:
        return _KINDS[words.DELETED]
    kind: str = row["kind"]
    if kind != words.REBALANCE:
        gap = gap_words(row.get("commit_gap"))
        return "; ".join([_KINDS.get(kind, kind), *_why(row), counted(row["members"], "member"), *gap])
    return "; ".join(
        [
            *_why(row),
            counted(row["members"], "member"),
            *_moves(row),
            *_unowned(row),
            *_sync_time(row),
            *gap_words(row.get("commit_gap")),
            *_skipped(row),
            *(condition.replace("_", " ") for condition in row["conditions"] or ()),
        ]
    )


def _why(row: Row) -> Iterator[str]:
    if row["causes"] is None:
        yield f"the cause is unknown: {', '.join(row['not_known'])} missing"
    for cause in row["causes"] or ():
        if cause == words.STRATEGY_CHANGED:
            changed = f"from {row['previous_protocol'] or 'none'} to {row['protocol'] or 'none'}"
            is_reported = row.get("protocol_source") == BROKER  # an earlier version of the monitor wrote no source
            yield f"the strategy changed {changed}" + (" (reported by the broker)" if is_reported else "")
        elif cause in _WHAT_MEMBERS_DID:
            did, one, several = _WHAT_MEMBERS_DID[cause]
            yield f"{_named(row, did)} {one if len(_that(row, did)) == 1 else several}"
        else:
            yield _WHOLE_GROUP.get(cause, cause)


def _that(row: Row, did: str) -> list[Row]:
    return [change for change in row["changes"] or () if did in change["changes"]]


def _named(row: Row, did: str) -> str:
    names = [
        member_name(member["client_id"], member["client_host"], member["group_instance_id"])
        for member in _that(row, did)
    ]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _moves(row: Row) -> Iterator[str]:
    moved, fewest = row["moved_partitions"], row["fewest_moves"]
    if row["withheld_partitions"]:
        yield f"{counted(row['withheld_partitions'], 'partition')} to be handed over in the next round"
    elif moved is None:
        yield "moves unknown"
    elif not moved:
        yield "no partition moved"
    elif fewest is None:
        yield f"{counted(moved, 'partition')} moved"
    elif moved == fewest:
        yield f"{counted(moved, 'partition')} moved, no fewer would do"
    else:
        bound = "" if row["fewest_is_exact"] else "at least "
        yield f"{counted(moved, 'partition')} moved, {bound}{fewest} had to"


def _unowned(row: Row) -> Iterator[str]:
    unowned = len(row["unowned"] or ()) - (row["withheld_partitions"] or 0)
    if unowned > 0:
        yield f"{counted(unowned, 'partition')} without an owner"


def _sync_time(row: Row) -> Iterator[str]:
    if row["sync_time_ms"] is not None:
        yield f"assigned within {row['sync_time_ms']} ms"


def _skipped(row: Row) -> Iterator[str]:
    if row["skipped_generations"]:
        yield f"{counted(row['skipped_generations'], 'generation')} before it without a record"


def gap_words(gap: Row | None) -> Iterator[str]:
    """What a row of `commit_gaps` says, in none, one or two phrases."""
    if gap is None:
        return
    gap_ms, usual_ms, worst_ms = gap["commit_gap_ms"], gap["usual_interval_ms"], gap["worst_gap_ms"]
    if gap_ms is not None:
        usually = "" if usual_ms is None else f", usually every {_seconds(usual_ms)}"
        yield f"nobody committed for {_seconds(gap_ms)}{usually}"
        if worst_ms is not None and worst_ms > gap_ms:
            yield f"{gap['worst_topic']}-{gap['worst_partition']} was not committed for {_seconds(worst_ms)}"
    elif gap["unknown_reason"] == gaps.NO_COMMIT_AFTER:
        yield _NOBODY_COMMITTED.get(gap["closed_by"], "nobody committed again")
    elif gap["unknown_reason"] != gaps.NO_COMMIT_BEFORE:
        yield f"how long nobody committed is unknown: {gap['unknown_reason'].replace('_', ' ')}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"
