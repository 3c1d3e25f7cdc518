"""`rebalance-monitor groups`: the groups of a cluster and their members, requested from the brokers."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from kafka.errors import KafkaError
from rich.table import Column, Table

from streaming.cli.logs import settings_of
from streaming.cli.run import config_option
from streaming.cli.text.conditions import Row, condition_shown, since_shown
from streaming.cli.text.fairness import evaluated, in_short
from streaming.cli.text.shown import output_console, shown
from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings
from streaming.errors import RemedyError
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.assignment.group_spec import assigned_partitions
from streaming.events import POLLED_PARTITION, Position
from streaming.group.advance import advance
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_TYPES,
    DescribedGroup,
    DescribedMember,
    Description,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    Unanswered,
    held_partitions,
)
from streaming.group.printable import in_ranges
from streaming.group.snapshot import BROKER, RECONCILING, STABLE, GroupSnapshot
from streaming.polled.descriptions import described_event
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups

REQUEST_TIMEOUT_SECONDS = 15.0
CONNECT_TIMEOUT_SECONDS = 10.0
_UNKNOWN = "?"
_DIVIDES = frozenset({STABLE, RECONCILING})
_RIGHTS = {
    CLUSTER_NOT_DESCRIBABLE: "without DESCRIBE on the cluster only groups are listed that you have DESCRIBE on",
    "group_authorization_failed": "the right DESCRIBE on the group is needed",
    "topic_authorization_failed": "the right DESCRIBE on the topics its members hold is needed",
    "cluster_authorization_failed": "the right DESCRIBE on the cluster is needed",
}


@click.command()
@click.option(
    "--bootstrap-server", metavar="HOST:PORT", help="Broker to ask [default: kafka.bootstrap_servers of the settings]."
)
@click.option("--cluster", metavar="NAME", help="Name of the cluster, if the settings have several.")
@config_option
@click.option(
    "--state", "states", multiple=True, help="Show only groups in this state, for example Stable. Repeatable."
)
@click.option(
    "--type",
    "group_types",
    multiple=True,
    type=click.Choice(GROUP_TYPES, case_sensitive=False),
    help="Show only groups of this type. Repeatable.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line for each group, with its members."
)
@click.option("-v", "--verbose", is_flag=True, help="Show one row for each member, with its partitions.")
@click.option(
    "--tables",
    metavar="PATH",
    help="Folder of the tables with conditions [default: paths.tables of the settings; none with --bootstrap-server].",
)
def groups(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    bootstrap_server: str | None,
    cluster: str | None,
    file: Path | None,
    states: tuple[str, ...],
    group_types: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    tables: str | None,
) -> None:
    """List the groups of a cluster: classic, consumer (KIP-848), share and streams.

    The command asks the brokers and reads no topic. It needs only the right DESCRIBE. "?" means that a broker did not
    report the value.

    Fairness compares the partitions of the members with the fairest valid assignment. The partitions of a topic are
    counted up to the highest one that a member holds.

    If a monitor writes tables, the output also has the active conditions of each group (a storm, a silent member, ...)
    with their start times in UTC. For more, run `history GROUP`.
    """
    try:
        settings = _settings(cluster, file, is_other_cluster=bootstrap_server is not None)
        with closing(Connection(_kafka(bootstrap_server, settings), REQUEST_TIMEOUT_SECONDS)) as connection:
            listing, found = _ask(Groups(connection, lambda: time.time_ns() // 1_000_000), _Wanted(states, group_types))
        conditions = _conditions(settings, tables, is_other_cluster=bootstrap_server is not None)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    except KafkaError as error:
        raise click.ClickException(f"the brokers do not answer ({error}): are they running?") from error
    warnings = [*_listing_warnings(listing), *_description_warnings(found)]
    if warnings and not found:
        raise click.ClickException("; ".join(["no group to be seen", *warnings]))
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    if as_json:
        for group in found:
            click.echo(json.dumps(_json(group, conditions), ensure_ascii=True))
    else:
        output_console().print(_table(found, conditions, verbose=verbose))


def _settings(cluster: str | None, file: Path | None, *, is_other_cluster: bool) -> Settings:
    """Those of the cluster meant; a broker that is named needs no choice among several."""
    settings = settings_of(file)
    return settings if is_other_cluster and cluster is None else settings.of_cluster(cluster)


def _kafka(bootstrap_server: str | None, settings: Settings) -> KafkaSettings:
    """The settings' own, for a person who waits."""
    kafka = settings.kafka
    given = {} if bootstrap_server is None else {"bootstrap_servers": bootstrap_server}
    patience = {"connect_timeout_seconds": min(kafka.connect_timeout_seconds, CONNECT_TIMEOUT_SECONDS)}
    try:
        return KafkaSettings.model_validate({**dict(kafka), **patience, **given})
    except ValueError:
        raise click.BadParameter(f"{bootstrap_server!r} is not HOST:PORT", param_hint="--bootstrap-server") from None


Conditions = Mapping[str, list[Row]]
"""Rows of `group_conditions` that hold, by group."""


def _conditions(settings: Settings, tables: str | None, *, is_other_cluster: bool) -> Conditions | None:
    """What the tables tell of the settings' cluster; None where there are none, or none of the cluster asked."""
    if tables is None and is_other_cluster:
        return None
    from streaming.delta.stored import NoTableError, active_conditions  # noqa: PLC0415 - slow to import

    try:
        rows = active_conditions(tables or settings.paths.tables, settings.kafka.cluster)
    except NoTableError:
        if tables is not None:
            raise
        return None
    return {group_id: list(of_group) for group_id, of_group in groupby(rows, key=lambda row: row["group_id"])}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """States and types asked for, none meaning all; what is not known is none of them."""

    states: Collection[str]
    group_types: Collection[str]

    def has(self, group: _Group) -> bool:
        return _among(group.state, self.states) and _among(group.group_type, self.group_types)

    def may_have(self, listed: ListedGroup) -> bool:
        """Whether it is worth describing: an old broker's list leaves out states and types."""
        return (listed.state is None or _among(listed.state, self.states)) and (
            listed.group_type is None or _among(listed.group_type, self.group_types)
        )


def _among(value: str | None, wanted: Collection[str]) -> bool:
    return not wanted or (value is not None and value.lower() in {each.lower() for each in wanted})


@dataclass(frozen=True, slots=True)
class _Group:
    """A group as listed and, where its coordinator told, as described: the description is the younger of the two."""

    group_id: str
    listed: ListedGroup
    described: DescribedGroup | None
    not_reported: str | None

    @property
    def state(self) -> str | None:
        return self.described.state if self.described else self.listed.state

    @property
    def group_type(self) -> str | None:
        return self.described.group_type if self.described else self.listed.group_type


def _ask(asked: Groups, wanted: _Wanted) -> tuple[GroupListing, list[_Group]]:
    """List, then describe. A group deleted in between is left out."""
    listing = asked.list_groups()
    candidates = {group_id: listed for group_id, listed in listing.groups.items() if wanted.may_have(listed)}
    described: Mapping[str, Description] = asked.describe_groups(
        {group_id: listed.group_type for group_id, listed in candidates.items()}
    )
    found = (
        _Group(group_id, candidates[group_id], *_reported(description))
        for group_id, description in sorted(described.items())
        if not isinstance(description, GroupNotFound)
    )
    return listing, [group for group in found if wanted.has(group)]


def _reported(description: DescribedGroup | Unanswered) -> tuple[DescribedGroup | None, str | None]:
    return (None, description.reason) if isinstance(description, Unanswered) else (description, None)


def _listing_warnings(listing: GroupListing) -> Iterator[str]:
    for gap in listing.gaps:
        where = "" if gap.broker_id is None else f"groups of broker {gap.broker_id} are missing: "
        yield where + _RIGHTS.get(gap.reason, gap.reason)


def _description_warnings(found: Collection[_Group]) -> Iterator[str]:
    reasons = Counter(group.not_reported for group in found if group.not_reported)
    for reason, count in sorted(reasons.items()):
        yield f"members of {count} groups are not told: {_RIGHTS.get(reason, reason)}"


def _json(group: _Group, conditions: Conditions | None) -> dict[str, Any]:
    described = group.described
    return {
        "group_id": group.group_id,
        "group_type": group.group_type,
        "state": group.state,
        "protocol_type": group.listed.protocol_type,
        "protocol": described and described.protocol,
        "protocol_source": BROKER if described and described.protocol else None,
        "group_epoch": described and described.group_epoch,
        "assignment_epoch": described and described.assignment_epoch,
        "members": described and [_member_json(described, member) for member in described.members],
        "not_reported": group.not_reported,
        "conditions": None
        if conditions is None
        else [
            {"condition": row["condition"], "since": row["since_time"].isoformat(), "detail": row["detail"]}
            for row in conditions.get(group.group_id, ())
        ],
    }


def _member_json(group: DescribedGroup, member: DescribedMember) -> dict[str, Any]:
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


def _table(found: Collection[_Group], conditions: Conditions | None, *, verbose: bool) -> Table:
    table = Table(Column("group", overflow="fold"), "type", "state", "protocol", Column("members", justify="right"))
    table.add_column("fairness", overflow="fold")
    if conditions is not None:
        table.add_column("conditions", overflow="fold")
    for name in ("member", "instance", "client", "host", "partitions") if verbose else ():
        table.add_column(name, overflow="fold")
    for group in found:
        described = group.described
        cells = _shown([group.group_id, group.group_type, group.state, *_protocol_and_count(described)])
        cells.append(_shown([_fairness(group.group_id, described) if described else None])[0])
        cells += [] if conditions is None else [_conditions_in_short(conditions.get(group.group_id, ()))]
        rows = _member_rows(described) if verbose and described else []
        table.add_row(*cells, *(rows[0] if rows else ()))
        for row in rows[1:]:
            table.add_row(*[""] * len(cells), *row)
    return table


def _protocol_and_count(described: DescribedGroup | None) -> tuple[str | None, str | None]:
    """A group described without a strategy has none at the moment: that is nothing, not unknown."""
    return (described.protocol or "", str(len(described.members))) if described else (None, None)


def _conditions_in_short(rows: Iterable[Row]) -> str:
    """A line each: what, and since when."""
    return "\n".join(f"{condition_shown(row)} since {since_shown(row)}" for row in rows)


def _fairness(group_id: str, described: DescribedGroup) -> str | None:
    """Nothing of a group that divides no partitions, or none at the moment."""
    if described.state not in _DIVIDES or described.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ""
    if described.protocol == KAFKA_STREAMS_PROTOCOL:
        return ""
    event, refusals = described_event(group_id, described, Position(POLLED_PARTITION, 0, 0))
    known = assignment_inputs(advance(GroupSnapshot(group_id), event))
    spec = replace(known.spec, partitions=assigned_partitions(known.owners))
    return None if refusals else in_short(*evaluated(spec, known.assignment))


def _member_rows(group: DescribedGroup) -> list[list[str]]:
    return [
        _shown(
            [
                member.member_id,
                member.group_instance_id or "",
                member.client_id,
                member.client_host,
                _held_in_short(group, member),
            ]
        )
        for member in group.members
    ]


def _held_in_short(group: DescribedGroup, member: DescribedMember) -> str | None:
    if member.active_tasks is not None:
        return " ".join(f"{task.subtopology_id}[{in_ranges(task.partitions)}]" for task in member.active_tasks)
    held = held_partitions(group, member)
    if held is None:
        return None
    by_topic = groupby(held, key=lambda pair: pair[0])
    return " ".join(f"{topic}[{in_ranges([number for _, number in pairs])}]" for topic, pairs in by_topic)


def _shown(cells: list[str | None]) -> list[str]:
    return [_UNKNOWN if cell is None else shown(cell) for cell in cells]
