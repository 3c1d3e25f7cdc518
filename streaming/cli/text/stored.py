"""Read the tables for the commands: the names of the clusters, and a group's rows.

Earlier versions of the monitor did not write all tables. So if a table does not exist, the functions return no rows.
The imports of this module are slow, so a command imports this module only when it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from streaming.cli.text.conditions import Row
from streaming.cli.text.fairness import fairness_problems
from streaming.config.secret_settings import without_credentials
from streaming.delta.stored import (
    END,
    active_conditions,
    has_row,
    latest_rows,
    stored_clusters,
    stored_rows,
    table_clusters,
)
from streaming.delta.stored_table import NoTableError
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, COMMIT_GAPS, GROUP_CONDITIONS, GROUP_LAG, REBALANCES, Table
from streaming.errors import RemedyError
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.fairness.participants import MEMBER
from streaming.evaluation.rebalances.rebalance_words import with_commit_gaps, without_upgrade_tombstones
from streaming.past.rows import imbalance

_Position = tuple[str, int, int]


class NoClusterError(RemedyError):
    """Error: the tables do not contain the cluster, or no name is given although they contain several clusters."""


def stored_cluster(root: str, name: str | None) -> str:
    """Return the name of the cluster in the tables. If there is only one cluster, `name` can be None.

    Raises NoClusterError if there is no such cluster. Without this error, a cluster with a wrong name would seem to
    have no conditions.
    """
    known = stored_clusters(root)
    if name is not None and name in known:
        return name
    if name is None and len(known) == 1:
        return known[0]
    tables, names = f"the tables in {without_credentials(root)}", ", ".join(known)
    if not known:
        raise NoClusterError(f"{tables} are empty: start the monitor")
    if name is None:
        raise NoClusterError(f"{tables} contain several clusters: set --cluster to one of {names}")
    raise NoClusterError(f"{tables} contain no cluster {name!r}, only {names}")


def no_row_error(root: str, cluster: str | None, group_id: str, what: str) -> RemedyError:
    """Return the error for a group without rows in the tables. `what` describes the missing rows."""
    try:
        if cluster is not None:
            stored_cluster(root, cluster)
        only_commits = has_row(root, GROUP_LAG, group_id=group_id, cluster=cluster)
    except NoClusterError as error:
        return error
    except NoTableError:
        only_commits = False
    if only_commits:
        return RemedyError(
            f"the tables in {root} contain committed offsets of {group_id!r}, but {what}. Either its consumers assign"
            " partitions themselves (assign() instead of subscribe()), or the monitor deleted the rows because they"
            " were older than tables.retention_days"
        )
    return RemedyError(
        f"the tables in {root} contain {what} of {group_id!r}: run `rebalance-monitor groups` for a list of all groups"
    )


class History(NamedTuple):
    """The rows that the command `history` prints.

    `rebalances` contains the last rows of the table `rebalances`, and `problems` the fairness problems after each of
    these rebalances. `changes` contains the rows of `group_conditions` since the first rebalance in `rebalances`.
    `active` contains the conditions that have not ended.
    """

    rebalances: Sequence[Row]
    problems: Sequence[Sequence[str]]
    changes: Sequence[Row]
    active: Sequence[Row]


def read_history(root: str, cluster: str | None, group_id: str, last: int) -> History:
    """Return the last rebalances of a group and its conditions. Raises RemedyError if the tables contain no row."""
    rebalances = _read_rebalances(root, cluster, group_id, last)
    changes, active = read_condition_changes(root, cluster, group_id), read_active_conditions(root, cluster, group_id)
    if not rebalances and not changes:
        raise no_row_error(root, cluster, group_id, "no rebalance")
    if rebalances:
        changes = [row for row in changes if row["sampled_time"] >= rebalances[0]["record_time"]]
    problems = _read_fairness_problems(root, cluster, group_id, _dates(rebalances))
    return History(rebalances, [problems.get(_position(row), ()) for row in rebalances], changes, active)


def _read_rebalances(root: str, cluster: str | None, group_id: str, last: int) -> Sequence[Row]:
    """Return the last rebalances. Only these rows are read, because one row can contain hundreds of members."""
    histories = []
    for name in table_clusters(root, REBALANCES) if cluster is None else (cluster,):
        rows = latest_rows(root, REBALANCES, 2 * last, END, group_id=group_id, cluster=name)
        histories.append(without_upgrade_tombstones([*reversed(rows)]))
    rebalances = list(merge(*histories, key=itemgetter("record_time")))[-last:]
    return with_commit_gaps(rebalances, read_commit_gaps(root, cluster, group_id, _dates(rebalances)))


def _dates(rebalances: Sequence[Row]) -> Collection[date]:
    return {row["record_time"].date() for row in rebalances}


def _read_fairness_problems(
    root: str, cluster: str | None, group_id: str, dates: Collection[date]
) -> Mapping[_Position, Sequence[str]]:
    rows = _rows_if_any(
        root, ASSIGNMENT_IMBALANCE, dates, group_id=group_id, cluster=cluster, measure=PARTITIONS, scope=MEMBER
    )
    return {
        _position(row): list(fairness_problems(imbalance(row), (row["topic_skew"] or {}).get("topics", 0)))
        for row in rows
    }


def _position(row: Row) -> _Position:
    return row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def read_commit_gaps(
    root: str, cluster: str | None, group_id: str, dates: Collection[date] | None = None
) -> Sequence[Row]:
    """Return the commit gaps of the group's rebalances. If `dates` (UTC) is set, only these dates are read."""
    return _rows_if_any(root, COMMIT_GAPS, dates, group_id=group_id, cluster=cluster)


def read_condition_changes(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the rows about the starts and the ends of a group's conditions."""
    rows = _rows_if_any(root, GROUP_CONDITIONS, None, group_id=group_id, cluster=cluster)
    return [row for row in rows if not row.get("is_repeated")]


def read_active_conditions(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the last row of each active condition of a group."""
    try:
        return active_conditions(root, cluster, group_id)
    except NoTableError:
        return ()


def _rows_if_any(root: str, table: Table, dates: Collection[date] | None, **equal: str | None) -> Sequence[Row]:
    try:
        return stored_rows(root, table, dates, **equal)
    except NoTableError:
        return ()
