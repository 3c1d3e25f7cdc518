"""Formats groups in three ways: as a table, with one value per line, or as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from rich.table import Table

from streaming.cli.text.conditions import Row, condition_title, format_since
from streaming.cli.text.fairness import evaluate_fairness, fairness_summary
from streaming.cli.text.reported import reported_cells, reported_columns
from streaming.cli.text.terminal import escape_text
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.assignment.group_spec import assigned_partitions
from streaming.events import POLLED_PARTITION, Position
from streaming.group.advance import advance
from streaming.group.listing import DescribedGroup, DescribedMember, ListedGroup, held_partitions
from streaming.group.printable import in_ranges
from streaming.group.snapshot import BROKER, RECONCILING, STABLE, GroupSnapshot
from streaming.http.monitor_api import Reported
from streaming.polled.descriptions import described_event
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

_UNKNOWN = "?"
_STATES_WITH_PARTITIONS = frozenset({STABLE, RECONCILING})
_COLUMNS = ("group", "type", "state", "protocol", "members", "fairness", "coordinator")
_MEMBER_COLUMNS = ("member", "instance", "client", "host", "partitions")

Conditions = Mapping[str, list[Row]]
"""Rows of active conditions from the table `group_conditions`, by group id."""


@dataclass(frozen=True, slots=True)
class AnsweredGroup:
    """The data of a group from two requests to the brokers.

    `listed` comes from the list of groups, and `described` from a later request to the group's coordinator. If the
    coordinator returned no description, `described` is None, and `not_reported` contains the reason.
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
        for row in _member_rows(group.described):
            members.add_row(*row)
        yield members


def column_names(conditions: Conditions | None, reported: Reported | None, *, verbose: bool) -> list[str]:
    """Return the names of the columns. The columns depend on the available sources (brokers, tables, monitor)."""
    of_monitor = () if reported is None else reported_columns(verbose=verbose)
    return [*_COLUMNS, *of_monitor, *(() if conditions is None else ("conditions",))]


def group_cells(
    group: AnsweredGroup, conditions: Conditions | None, reported: Reported | None, *, verbose: bool
) -> list[str]:
    """Return the values of a group, in the order of `column_names`."""
    described = group.described
    cells = _terminal_cells([group.group_id, group.group_type, group.state, *_protocol_and_member_count(described)])
    cells += _terminal_cells([_fairness_text(group.group_id, described) if described else None])
    cells.append(str(group.listed.coordinator))
    if reported is not None:
        cells += reported_cells(reported.get(group.group_id), verbose=verbose)
    return cells if conditions is None else [*cells, _conditions_text(conditions.get(group.group_id, ()))]


def _protocol_and_member_count(described: DescribedGroup | None) -> tuple[str | None, str | None]:
    """Return the cells "protocol" (empty if the group has no strategy) and "members". None means unknown."""
    return (described.protocol or "", str(len(described.members))) if described else (None, None)


def _conditions_text(rows: Iterable[Row]) -> str:
    return "\n".join(f"{condition_title(row)} since {format_since(row)}" for row in rows)


def _fairness_text(group_id: str, described: DescribedGroup) -> str | None:
    """Return the cell "fairness" (None if unknown). The cell of a group without assigned partitions is empty."""
    if described.state not in _STATES_WITH_PARTITIONS or described.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ""
    if described.protocol == KAFKA_STREAMS_PROTOCOL:
        return ""
    event, refusals = described_event(group_id, described, Position(POLLED_PARTITION, 0, 0))
    inputs = assignment_inputs(advance(GroupSnapshot(group_id), event))
    partitions = assigned_partitions(inputs.owners)
    if refusals or sum(partitions.values()) > len(inputs.owners):  # a partition without an owner: there is no score
        return None
    return fairness_summary(*evaluate_fairness(replace(inputs.spec, partitions=partitions), inputs.assignment))


def _member_rows(group: DescribedGroup) -> list[list[str]]:
    return [
        _terminal_cells(
            [
                member.member_id,
                member.group_instance_id or "",
                member.client_id,
                member.client_host,
                _partitions_text(group, member),
            ]
        )
        for member in group.members
    ]


def _partitions_text(group: DescribedGroup, member: DescribedMember) -> str | None:
    if member.active_tasks is not None:
        return " ".join(f"{task.subtopology_id}[{in_ranges(task.partitions)}]" for task in member.active_tasks)
    held = held_partitions(group, member)
    if held is None:
        return None
    by_topic = groupby(held, key=lambda pair: pair[0])
    return " ".join(f"{topic}[{in_ranges([number for _, number in pairs])}]" for topic, pairs in by_topic)


def _terminal_cells(cells: list[str | None]) -> list[str]:
    return [_UNKNOWN if cell is None else escape_text(cell) for cell in cells]
