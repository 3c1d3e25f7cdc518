"""Describe a row of the table `rebalances` in one sentence.

The sentence contains member names exactly as the members sent them. Every caller must escape the sentence for its
output format, for example HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streaming.combine import gaps
from streaming.evaluation.phrases import counted, first_named
from streaming.evaluation.rebalances import rebalances as words
from streaming.evaluation.rebalances.member_changes import GONE, JOINED, REJOINED, RESUBSCRIBED
from streaming.group.members import member_name
from streaming.group.snapshot import BROKER

Row = Mapping[str, Any]
"""A row of the table `rebalances`. The keys are the column names."""

_CONTINUES = frozenset({words.UPGRADED, words.DOWNGRADED})
_GROUP_CAUSES = {
    words.METADATA_CHANGED: "a subscribed topic has more assigned partitions than before, or was created again",
    words.COOPERATIVE_FOLLOWUP: "the next round of a cooperative rebalance",
    words.UNEXPLAINED: "no record shows a cause",
}
_MEMBER_CAUSES = {
    words.MEMBER_GONE: (GONE, "is gone", "are gone"),
    words.MEMBER_JOINED: (JOINED, "joined", "joined"),
    words.SUBSCRIPTION_CHANGED: (RESUBSCRIBED, "changed its subscription", "changed their subscriptions"),
}
_EARLIER_CAUSES = {
    words.MEMBER_GONE: "at least one member left with the downgrade",
    words.MEMBER_JOINED: "at least one member joined with the downgrade",
}
"""The causes of a rebalance if the members left or joined with the downgrade before the rebalance (`rebalances`)."""
_KINDS = {
    words.FIRST_SEEN: "seen for the first time",
    words.CREATED: "created again",
    words.UPGRADED: "upgraded from the classic protocol",
    words.DOWNGRADED: "downgraded to the classic protocol",
}
_NO_COMMIT_AFTER = {
    gaps.NEXT_REBALANCE: "no member committed before the next rebalance",
    gaps.ROUND_PASSED: "no member committed within evaluation.stuck_after_seconds",
    gaps.GROUP_DELETED: "no member committed before the group was deleted",
}


def without_upgrade_tombstones(rows: Sequence[Row]) -> Sequence[Row]:
    """Remove each row `deleted` that belongs to an upgrade or downgrade, because the group was not deleted.

    >>> rows = [{"cluster": "c", "group_id": "g", "kind": kind} for kind in ("deleted", "upgraded", "deleted")]
    >>> [row["kind"] for row in without_upgrade_tombstones(rows)]
    ['upgraded', 'deleted']
    """
    tombstones = upgrade_tombstones(rows)
    return [row for index, row in enumerate(rows) if index not in tombstones]


def upgrade_tombstones(rows: Sequence[Row]) -> frozenset[int]:
    """Return the indexes of the tombstones that `without_upgrade_tombstones` removes. The rows are of several groups.

    >>> rows = [{"kind": "deleted"}, {"kind": "deleted"}, {"kind": "upgraded"}]
    >>> upgrade_tombstones([{**row, "cluster": "prod", "group_id": name} for row, name in zip(rows, "aba")])
    frozenset({0})
    """
    found: set[int] = set()
    next_kind: dict[tuple[str, str], str] = {}
    for index in reversed(range(len(rows))):
        group, kind = (rows[index]["cluster"], rows[index]["group_id"]), rows[index]["kind"]
        if kind == words.DELETED and next_kind.get(group, "") in _CONTINUES:
            found.add(index)
        next_kind[group] = kind
    return frozenset(found)


def with_commit_gaps(rows: Sequence[Row], of_gaps: Sequence[Row]) -> Sequence[Row]:
    """Add the matching row of `commit_gaps` to each row of `rebalances`, as the field `commit_gap`.

    The field is None if `commit_gaps` has no matching row yet.

    >>> rebalance = {"cluster": "prod", "offsets_topic_partition": 3, "offsets_topic_offset": 17}
    >>> with_commit_gaps([rebalance], [{**rebalance, "commit_gap_ms": 12_000}])[0]["commit_gap"]["commit_gap_ms"]
    12000
    """
    by_position = {_position(gap): gap for gap in of_gaps}
    return [{**row, "commit_gap": by_position.get(_position(row))} for row in rows]


def _position(row: Row) -> tuple[str, int, int]:
    return row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def describe_rebalance(row: Row) -> str:
    """Describe one row of `rebalances`.

    >>> pod = {"group_instance_id": "pod-1", "client_id": "app", "client_host": "/10.4.5.98", "changes": ["rejoined"]}
    >>> describe_rebalance({"kind": "static_rejoin", "changes": [pod]})
    'static member pod-1 rejoined under a new member id; no rebalance'
    """
    kind: str = row["kind"]
    if kind == words.STATIC_REJOIN:
        noun = "static member" if len(_members_with(row, REJOINED)) == 1 else "static members"
        return f"{noun} {_names(row, REJOINED)} rejoined under a new member id; no rebalance"
    if kind == words.BECAME_EMPTY:
        return "; ".join([*_why(row), "the group is empty", *_skipped(row)])
    if kind == words.DELETED:
        return "deleted"
    members, gap = counted(row["members"], "member"), _describe_gap(row.get("commit_gap"))
    if kind != words.REBALANCE:
        return "; ".join([_KINDS.get(kind, kind), *_why(row), members, *gap])
    conditions = (condition.replace("_", " ") for condition in row["conditions"] or ())
    return "; ".join([*_why(row), members, *_moves(row), *gap, *_skipped(row), *conditions])


def _why(row: Row) -> Iterator[str]:
    if row["causes"] is None:
        yield f"the cause is unknown (missing: {', '.join(row['not_known'])})"
    for cause in row["causes"] or ():
        if cause == words.STRATEGY_CHANGED:
            changed = f"from {row['previous_protocol'] or 'none'} to {row['protocol'] or 'none'}"
            is_reported = row.get("protocol_source") == BROKER  # earlier versions of the monitor wrote no source
            yield f"the strategy changed {changed}" + (" (reported by the broker)" if is_reported else "")
        elif cause in _EARLIER_CAUSES and not _members_with(row, _MEMBER_CAUSES[cause][0]):
            yield _EARLIER_CAUSES[cause]
        elif cause in _MEMBER_CAUSES:
            change, singular, plural = _MEMBER_CAUSES[cause]
            yield f"{_names(row, change)} {singular if len(_members_with(row, change)) == 1 else plural}"
        else:
            yield _GROUP_CAUSES.get(cause, cause)


def _members_with(row: Row, change: str) -> list[Row]:
    return [member for member in row["changes"] or () if change in member["changes"]]


def _names(row: Row, change: str) -> str:
    members = _members_with(row, change)
    return first_named([member_name(one["client_id"], one["client_host"], one["group_instance_id"]) for one in members])


def _moves(row: Row) -> Iterator[str]:
    moved, fewest = row["moved_partitions"], row["fewest_moves"]
    if row["withheld_partitions"]:
        yield f"{counted(row['withheld_partitions'], 'partition')} withheld until the next round"
    elif moved is None:
        yield "number of moved partitions unknown"
    elif not moved:
        yield "no partition moved"
    elif fewest is None:
        yield f"{counted(moved, 'partition')} moved"
    else:
        bound = "" if row["fewest_is_exact"] else "at least "
        yield f"{counted(moved, 'partition')} moved ({bound}{fewest} necessary)"
    unowned = len(row["unowned"] or ()) - (row["withheld_partitions"] or 0)
    if unowned > 0:
        yield f"{counted(unowned, 'partition')} no longer assigned"
    if row["sync_time_ms"] is not None:
        yield f"assigned within {row['sync_time_ms']} ms"


def _skipped(row: Row) -> Iterator[str]:
    if row["skipped_generations"]:
        have = "has" if row["skipped_generations"] == 1 else "have"
        yield f"{counted(row['skipped_generations'], 'preceding generation')} {have} no record"


def _describe_gap(gap: Row | None) -> Iterator[str]:
    if gap is None:
        return
    gap_ms, usual_ms, worst_ms = gap["commit_gap_ms"], gap["usual_interval_ms"], gap["worst_gap_ms"]
    if gap_ms is not None:
        usual = "" if usual_ms is None else f" (usual interval: {_seconds(usual_ms)})"
        yield f"no member committed for {_seconds(gap_ms)}{usual}"
        if worst_ms is not None and worst_ms > gap_ms:
            yield f"{gap['worst_topic']}-{gap['worst_partition']} was not committed for {_seconds(worst_ms)}"
    elif gap["unknown_reason"] == gaps.NO_COMMIT_AFTER:
        yield _NO_COMMIT_AFTER.get(gap["closed_by"], "no member has committed since then")
    elif gap["unknown_reason"] != gaps.NO_COMMIT_BEFORE:
        yield f"the commit gap is unknown: {gap['unknown_reason'].replace('_', ' ')}"
    if again := gap.get("recommitted_records"):  # earlier versions of the monitor wrote no such column
        yield f"{counted(again, 'record')} {'was' if again == 1 else 'were'} committed twice"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"
