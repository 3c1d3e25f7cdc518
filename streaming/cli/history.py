"""`rebalance-monitor history`: the last rebalances of a group, in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import click

from streaming.cli.conditions import Row, change_sentence, condition_changes, standing_rows, standing_sentence
from streaming.cli.fairness import unfairness
from streaming.cli.gaps import gap_words, gaps_of, with_gaps
from streaming.cli.run import config_option
from streaming.cli.shown import output_console, shown
from streaming.config.load import load_settings
from streaming.errors import RemedyError
from streaming.judgement import rebalances as words
from streaming.judgement.condition_words import counted
from streaming.judgement.imbalance import MEMBER, PARTITIONS, Imbalance

_Position = tuple[str, int, int]

MOST_NAMED = 3
_GOES_ON = frozenset({words.UPGRADED, words.DOWNGRADED})
_WHOLE_GROUP = {
    words.METADATA_CHANGED: "a subscribed topic has another number of partitions",
    words.COOPERATIVE_FOLLOWUP: "the next round of a cooperative rebalance",
    words.UNEXPLAINED: "no record says why",
}
_WHAT_MEMBERS_DID = {
    words.MEMBER_GONE: (words.WENT, "is gone", "are gone"),
    words.MEMBER_JOINED: (words.JOINED, "joined", "joined"),
    words.SUBSCRIPTION_CHANGED: (words.RESUBSCRIBED, "subscribes anew", "subscribe anew"),
}
_KINDS = {
    words.FIRST_SEEN: "seen for the first time",
    words.CREATED: "created anew",
    words.DELETED: "deleted",
    words.UPGRADED: "upgraded to the consumer protocol (KIP-848)",
    words.DOWNGRADED: "downgraded to the classic protocol",
}


@click.command()
@click.argument("group")
@click.option("--last", default=20, show_default=True, type=click.IntRange(1), help="How many of them, at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row and line, every column.")
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables of the settings].")
@click.option("--cluster", metavar="NAME", help="Only this cluster, where the tables hold several.")
@config_option
def history(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str, last: int, as_json: bool, tables: str | None, cluster: str | None, file: Path | None
) -> None:
    """Tell the last rebalances of GROUP: when, why, who, what moved and what had to, how fair it is. Times are UTC.

    Between them stands when something began to be the matter with the group, and when it ended; last what still is.
    Reads the tables `rebalances`, `commit_gaps`, `assignment_imbalance` and `group_conditions`; the monitor may run
    meanwhile, or not.
    """
    try:
        told = _told(group, tables or load_settings(file).paths.tables, cluster, last)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        for row in told.rebalances:
            click.echo(json.dumps(row, default=str, ensure_ascii=True))
        return
    several = len({row["cluster"] for row in told.rebalances}) > 1
    for line in _lines(told, several=several):
        output_console().print(line, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Told:
    """The last rows of `rebalances`, those of `group_conditions` since then, and those that began and did not end.

    `unfair` has phrases by the position of a row of `rebalances`.
    """

    rebalances: Sequence[Row]
    unfair: Mapping[_Position, Sequence[str]]
    changes: Sequence[Row]
    standing: Sequence[Row]


def _told(group: str, root: str, cluster: str | None, last: int) -> _Told:
    rebalances = _rows(group, root, cluster)[-last:]
    changes, standing = condition_changes(root, cluster, group), standing_rows(root, cluster, group)
    if not rebalances and not changes:
        raise RemedyError(
            f"{root} has no rebalance of {group!r}: `rebalance-monitor groups` lists the groups there are"
        )
    if rebalances:
        changes = [row for row in changes if row["sampled_time"] >= rebalances[0]["record_time"]]
    return _Told(rebalances, _unfair(group, root, cluster), changes, standing)


def _lines(told: _Told, *, several: bool) -> Iterator[str]:
    """Everything in the order of time, and at last what holds now."""
    lines = []
    for row in told.rebalances:
        said = "; ".join([sentence(row), *told.unfair.get(_position(row), ())])
        lines.append((row["record_time"], row, f"generation {row['generation_id']}: {said}"))
    lines += [(row["sampled_time"], row, change_sentence(row)) for row in told.changes]
    for when, row, text in sorted(lines, key=itemgetter(0)):
        at = when.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        yield f"{at}  {_of_cluster(row, several=several)}{text}"
    for row in told.standing:
        yield f"{_of_cluster(row, several=several)}{standing_sentence(row)}"


def _of_cluster(row: Row, *, several: bool) -> str:
    return f"{shown(row['cluster'])}  " if several else ""


def _rows(group: str, root: str, cluster: str | None) -> Sequence[Row]:
    from streaming.sinks.stored import stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.sinks.tables import REBALANCES  # noqa: PLC0415 - as above

    rows = stored_rows(root, REBALANCES, group_id=group, cluster=cluster)
    if not rows:
        return ()
    rows = with_gaps(rows, gaps_of(group, root, cluster))
    # The tombstone of a group that goes on under another protocol is no end.
    over = [now["kind"] == words.DELETED and after["kind"] in _GOES_ON for now, after in pairwise(rows)]
    return [row for row, is_left_out in zip(rows, [*over, False], strict=True) if not is_left_out]


def _position(row: Row) -> _Position:
    return row["cluster"], row["kafka_partition"], row["kafka_offset"]


def _unfair(group: str, root: str, cluster: str | None) -> Mapping[_Position, Sequence[str]]:
    """What is not as fair as can be, by the record that assigned it so."""
    from streaming.sinks.stored import NoTableError, stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.sinks.tables import ASSIGNMENT_IMBALANCE  # noqa: PLC0415 - as above

    try:
        rows = stored_rows(
            root, ASSIGNMENT_IMBALANCE, group_id=group, cluster=cluster, measure=PARTITIONS, scope=MEMBER
        )
    except NoTableError:
        return {}
    measures = Imbalance.__struct_fields__
    return {
        _position(row): list(
            unfairness(Imbalance(**{name: row[name] for name in measures}), (row["topic_skew"] or {}).get("topics", 0))
        )
        for row in rows
    }


def sentence(row: Row) -> str:
    """One row of `rebalances` in words.

    >>> row = {"kind": "static_rejoin", "changes": [{"group_instance_id": "pod-1", "changes": ["rejoined"]}]}
    >>> sentence(row)
    'static member pod-1 rejoined under a new member id; no rebalance'
    """
    if row["kind"] == words.STATIC_REJOIN:
        noun = "static member" if len(_that(row, words.REJOINED)) == 1 else "static members"
        return f"{noun} {_named(row, words.REJOINED)} rejoined under a new member id; no rebalance"
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
            yield f"the strategy changed from {shown(row['previous_protocol'])} to {shown(row['protocol'])}"
        elif cause in _WHAT_MEMBERS_DID:
            did, one, several = _WHAT_MEMBERS_DID[cause]
            yield f"{_named(row, did)} {one if len(_that(row, did)) == 1 else several}"
        else:
            yield _WHOLE_GROUP.get(cause, cause)


def _that(row: Row, did: str) -> list[Row]:
    return [change for change in row["changes"] or () if did in change["changes"]]


def _named(row: Row, did: str) -> str:
    names = [
        shown(member["group_instance_id"] or f"{member['client_id']} ({member['client_host']})")
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
