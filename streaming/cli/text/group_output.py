"""Formats groups in three ways: as a table, with one value per line, or as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from streaming.cli.text.conditions import Row, condition_title, format_since
from streaming.cli.text.fairness import evaluate_fairness, fairness_summary
from streaming.cli.text.terminal import escape_text
from streaming.evaluation.assignment.assignment_inputs import assigned_partitions, assignment_inputs
from streaming.events import CLASSIC, POLLED_PARTITION, Position
from streaming.group.advance import advance
from streaming.group.listing import DescribedGroup, DescribedMember, ListedGroup, held_partitions
from streaming.group.printable import by_topic, in_ranges
from streaming.group.snapshot import BROKER, RECONCILING, STABLE, GroupSnapshot
from streaming.http.client import Reported
from streaming.polled.descriptions import described_event
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, COPARTITIONING_PROTOCOLS

_UNKNOWN = "?"
_STATES_WITH_PARTITIONS = frozenset({STABLE, RECONCILING})
_COLUMNS = ("group", "type", "state", "protocol", "members", "fairness", "coordinator")
_MEMBER_COLUMNS = ("member", "instance", "client", "host", "partitions")
_REPORTED_COLUMNS = ("lag", "cause of lag")
_VERBOSE_REPORTED_COLUMNS = (
    "last commit",
    "consumed/s",
    "produced/s",
    "catches up in",
    "leader",
    "session timeout",
    "rebalance timeout",
)

Conditions = Mapping[str, list[Row]]
"""Rows of active conditions from the table `group_conditions`, by group id."""


@dataclass(frozen=True, slots=True)
class AnsweredGroup:
    """The entry of a group in the list of groups, and the description that its coordinator returned later.

    If the coordinator returned no description, `not_reported` contains the reason.
    """

    group_id: str
    listed: ListedGroup
    described: DescribedGroup | None
    not_reported: str | None

    @property
    def state(self) -> str | None:
        """The state of the group, or None if unknown."""
        return self.described.state if self.described else self.listed.state

    @property
    def group_type(self) -> str | None:
        """The type of the group, or None if the brokers are too old to report types."""
        return self.described.group_type if self.described else self.listed.group_type


def group_as_json(
    group: AnsweredGroup, conditions: Conditions | None, reported: Reported | None = None
) -> dict[str, Any]:
    """Return the JSON object of a group for --json. None means unknown."""
    described = group.described
    return {
        "group_id": group.group_id,
        "group_type": group.group_type,
        "state": group.state,
        "coordinator": group.listed.coordinator,
        "protocol_type": group.listed.protocol_type,
        "protocol": described and described.protocol,
        "protocol_source": BROKER if described and described.protocol else None,
        "group_epoch": described and described.group_epoch,
        "assignment_epoch": described and described.assignment_epoch,
        "members": described and [_member_as_json(described, member) for member in described.members],
        "not_reported": group.not_reported,
        "conditions": None
        if conditions is None
        else [
            {"condition": row["condition"], "since": row["since_time"].isoformat(), "detail": row["detail"]}
            for row in conditions.get(group.group_id, ())
        ],
        "monitor": None if reported is None else reported.get(group.group_id),
    }


def _member_as_json(group: DescribedGroup, member: DescribedMember) -> dict[str, Any]:
    held = held_partitions(group, member)
    tasks = member.active_tasks
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "partitions": None if held is None else [{"topic": topic, "partition": number} for topic, number in held],
        "tasks": None
        if tasks is None
        else [f"{task.subtopology_id}_{number}" for task in tasks for number in task.partitions],
    }


def group_table(
    selected: Collection[AnsweredGroup], conditions: Conditions | None, reported: Reported | None = None
) -> Table:
    """Return a table with one row for each group."""
    table = Table()
    for name in column_names(conditions, reported, verbose=False):
        table.add_column(name, justify="right" if name == "members" else "left")
    for group in selected:
        table.add_row(*group_cells(group, conditions, reported, verbose=False))
    return table


def group_details(group: AnsweredGroup, conditions: Conditions | None, reported: Reported | None) -> Iterator[Table]:
    """Yield a table with one value of the group per line, and then a table of its members."""
    values = Table.grid(padding=(0, 2))
    names = column_names(conditions, reported, verbose=True)
    for name, cell in zip(names, group_cells(group, conditions, reported, verbose=True), strict=True):
        if cell:
            values.add_row(name, cell)
    yield values
    if group.described and group.described.members:
        members = Table(*_MEMBER_COLUMNS)
        for one in group.described.members:
            partitions = _partitions_text(group.described, one)
            cells = [one.member_id, one.group_instance_id or "", one.client_id, one.client_host, partitions]
            members.add_row(*_terminal_cells(cells))
        yield members


def column_names(conditions: Conditions | None, reported: Reported | None, *, verbose: bool) -> list[str]:
    """Return the names of the columns. The columns depend on the available sources (brokers, tables, monitor)."""
    of_monitor = () if reported is None else _reported_columns(verbose=verbose)
    return [*_COLUMNS, *of_monitor, *(() if conditions is None else ("conditions",))]


def _reported_columns(*, verbose: bool) -> Sequence[str]:
    return (*_REPORTED_COLUMNS, *_VERBOSE_REPORTED_COLUMNS) if verbose else _REPORTED_COLUMNS


def group_cells(
    group: AnsweredGroup, conditions: Conditions | None, reported: Reported | None, *, verbose: bool
) -> list[str]:
    """Return the values of a group, in the order of `column_names`."""
    described = group.described
    cells = [group.group_id, group.group_type, group.state]
    if described is None:
        cells += [None, None, None]
    else:
        cells += [described.protocol or "", str(len(described.members)), _fairness_text(group.group_id, described)]
    texts = [*_terminal_cells(cells), str(group.listed.coordinator)]
    if reported is not None:
        texts += reported_cells(reported.get(group.group_id), verbose=verbose)
    if conditions is not None:
        rows = conditions.get(group.group_id, ())
        texts.append("\n".join(f"{condition_title(row)} since {format_since(row)}" for row in rows))
    return texts


def reported_cells(group: Mapping[str, Any] | None, *, verbose: bool) -> list[str]:
    """Return the values that only a running monitor knows, for one group.

    `group` is the group's JSON from the API, or None if the monitor does not know the group.
    """
    if group is None:
        return [_UNKNOWN] * len(_reported_columns(verbose=verbose))
    from streaming.page.rendering import amount, catch_up, utc, whole  # noqa: PLC0415 - slow to import

    lag, cause = group["lag"], group.get("cause")
    cause_and_advice = [] if cause is None else [text for text in (cause["text"], cause["advice"]) if text]
    cells = [whole(lag), escape_text(" ".join(cause_and_advice))]
    if verbose:
        consumed, produced = group["consumed_records_per_second"], group["produced_records_per_second"]
        cells += [utc(group["last_commit_ms"]), amount(consumed), amount(produced)]
        cells.append(catch_up(lag, consumed, produced, group["catch_up_seconds"]))
        if group["member_count"] == 0:
            return [*cells, "", "", ""]
        leader = group["leader"]
        leader_name = None if group["group_type"] == CLASSIC else ""
        if leader is not None:
            leader_name = f"{leader['client_id']} {leader['client_host']}".strip()
        cells += _terminal_cells([leader_name])
        cells += [_timeouts(group["session_timeouts_ms"]), _timeouts(group["rebalance_timeouts_ms"])]
    return cells


def _timeouts(timeouts_ms: Sequence[int]) -> str:
    from streaming.page.rendering import duration  # noqa: PLC0415 - slow to import

    return ", ".join(duration(timeout_ms / 1000) for timeout_ms in timeouts_ms) or _UNKNOWN


def _fairness_text(group_id: str, described: DescribedGroup) -> str | None:
    """Return the cell "fairness" (None if unknown). The cell of a group without assigned partitions is empty."""
    if described.state not in _STATES_WITH_PARTITIONS or described.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ""
    if described.protocol in COPARTITIONING_PROTOCOLS:
        return ""
    event, refusals = described_event(group_id, described, Position(POLLED_PARTITION, 0, 0))
    inputs = assignment_inputs(advance(GroupSnapshot(group_id), event))
    partitions = assigned_partitions(inputs.owners)
    if refusals or sum(partitions.values()) > len(inputs.owners):  # a partition without an owner: there is no score
        return None
    return fairness_summary(*evaluate_fairness(replace(inputs.spec, partitions=partitions), inputs.assignment))


def _partitions_text(group: DescribedGroup, member: DescribedMember) -> str | None:
    if member.active_tasks is not None:
        return " ".join(f"{task.subtopology_id}[{in_ranges(task.partitions)}]" for task in member.active_tasks)
    held = held_partitions(group, member)
    return None if held is None else " ".join(f"{topic}[{numbers}]" for topic, numbers in by_topic(held))


def _terminal_cells(cells: list[str | None]) -> list[str]:
    return [_UNKNOWN if cell is None else escape_text(cell) for cell in cells]
