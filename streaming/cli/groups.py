"""`rebalance-monitor groups` lists the groups and members of a cluster, as the brokers report them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click
from kafka.errors import KafkaError

from streaming.cli.run import Address, config_option
from streaming.cli.text.group_output import AnsweredGroup, Conditions, group_as_json, group_details, group_table
from streaming.cli.text.logs import load_settings_and_redact
from streaming.cli.text.terminal import print_tables
from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings
from streaming.errors import RemedyError
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_STATES,
    GROUP_TYPES,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    Unanswered,
)
from streaming.http.client import request_reports
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from streaming.wall_clock import now_ms

REQUEST_TIMEOUT_SECONDS = 15.0
CONNECT_TIMEOUT_SECONDS = 10.0
_REASONS = {
    CLUSTER_NOT_DESCRIBABLE: (
        "you have no DESCRIBE permission on the cluster, so the list contains only groups that you can describe"
    ),
    "group_authorization_failed": "you need the DESCRIBE permission on the group",
    "topic_authorization_failed": "you need the DESCRIBE permission on the topics of the members",
    "cluster_authorization_failed": "you need the DESCRIBE permission on the cluster",
}


@click.command()
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT",
    help="Address of the broker to connect to first [default: kafka.bootstrap_servers in the settings].",
)
@click.option(
    "--cluster",
    metavar="NAME",
    help="Name of the cluster in the settings. With --bootstrap-server, name of the cluster in the tables and in the"
    " monitor. Required if there are several clusters.",
)
@config_option
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(GROUP_STATES, case_sensitive=False),
    help="Show only groups in this state. You can repeat this option.",
)
@click.option(
    "--type",
    "group_types",
    multiple=True,
    type=click.Choice(GROUP_TYPES, case_sensitive=False),
    help="Show only groups of this type. You can repeat this option.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="For each group, print one line with a JSON object. The object includes the members of the group.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show each value of a group on a separate line. Also show the members and their partitions.",
)
@click.option(
    "--tables",
    metavar="PATH",
    help="Folder of the tables, which contain the conditions of the groups [default: paths.tables in the settings; if"
    " --bootstrap-server is given, no tables are read].",
)
@click.option(
    "--monitor",
    type=Address(),
    help="Get the lag and other values from the monitor at this address, for example http://localhost:9560 [default:"
    " links.page_url in the settings; if --bootstrap-server is given, no monitor is used].",
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
    monitor: str | None,
) -> None:
    """List the groups of a cluster: classic, consumer (KIP-848), share and streams.

    The command requests the groups from the brokers and reads no topic. So you need only the DESCRIBE permission. "?"
    means that a value is unknown.

    The column "fairness" compares the current assignment with the fairest valid assignment. The brokers do not report
    partition counts with the groups. So the command assumes that the highest assigned partition of a topic is its last
    partition.

    If the tables of a monitor exist, the output also shows the active conditions of each group, for example a rebalance
    storm. The start times of the conditions are in UTC. For details, run `rebalance-monitor history GROUP`. If the
    monitor does not run, the active conditions are unknown, and the command prints a warning.

    If the address of a running monitor is known, the output also shows the lag of each group and the cause of the lag.
    With --verbose, the output also shows the time of the last commit in UTC, the leader, the timeouts and the rates.
    Rates are in records per second. Each rate is a mean over five minutes. With --json, the field `monitor` contains
    all fields that the API of the monitor returns for the group.
    """
    try:
        is_other_cluster = bootstrap_server is not None
        has_named_source = tables is not None or monitor is not None
        is_any_name_valid = is_other_cluster and (cluster is None or has_named_source)
        settings = _settings(cluster, file, is_any_name_valid=is_any_name_valid)
        with closing(Connection(_kafka_settings(bootstrap_server, settings), REQUEST_TIMEOUT_SECONDS)) as connection:
            requests = Groups(connection, now_ms)
            listing, selected = _list_and_describe(requests, _Filter(states, group_types))
        conditions, silence = _read_conditions(settings, tables, cluster, is_other_cluster=is_other_cluster)
        reported, problems = request_reports(settings, monitor, cluster, is_other_cluster=is_other_cluster)
    except RemedyError as error:
        address = "kafka.bootstrap_servers" if bootstrap_server is None else "--bootstrap-server"
        raise click.ClickException(str(error).replace("kafka.bootstrap_servers", address)) from error
    except KafkaError as error:
        raise click.ClickException(
            f"the brokers do not answer ({error}): check that the brokers are running"
        ) from error
    gaps = list(_listing_warnings(listing))
    if gaps and not selected:
        raise click.ClickException("; ".join(["the brokers listed no group", *gaps]))
    for warning in (*gaps, *_description_warnings(selected), *silence, *problems):
        click.echo(f"Warning: {warning}", err=True)
    if as_json:
        for group in selected:
            click.echo(json.dumps(group_as_json(group, conditions, reported), ensure_ascii=True))
    elif verbose:
        for group in selected:
            print_tables(*group_details(group, conditions, reported))
            click.echo()
    else:
        print_tables(group_table(selected, conditions, reported))


def _settings(cluster: str | None, file: Path | None, *, is_any_name_valid: bool) -> Settings:
    """Load the settings of the cluster.

    If the settings do not contain the cluster, and any name is valid, load the settings of [kafka] instead.
    """
    settings = load_settings_and_redact(file)
    is_configured = cluster in {one.kafka.cluster for one in settings.of_clusters()}
    return settings if is_any_name_valid and not is_configured else settings.of_cluster(cluster)


def _kafka_settings(bootstrap_server: str | None, settings: Settings) -> KafkaSettings:
    """Return the settings of the connection. The timeout is short, because a user waits for the output."""
    kafka = settings.kafka
    override = {} if bootstrap_server is None else {"bootstrap_servers": bootstrap_server}
    timeout = {"connect_timeout_seconds": min(kafka.connect_timeout_seconds, CONNECT_TIMEOUT_SECONDS)}
    try:
        return KafkaSettings.model_validate({**dict(kafka), **timeout, **override})
    except ValueError:
        raise click.BadParameter(f"{bootstrap_server!r} is not HOST:PORT", param_hint="--bootstrap-server") from None


def _read_conditions(
    settings: Settings, tables: str | None, cluster: str | None, *, is_other_cluster: bool
) -> tuple[Conditions | None, list[str]]:
    """Return the active conditions of each group, or None if they are unknown. Also return a list of warnings.

    The conditions are unknown if --bootstrap-server is set without --tables. They are also unknown if the table of
    conditions is not readable, or if the tables do not contain the cluster. But if --tables is set, these two cases
    raise RemedyError. The conditions are also unknown if the last measurement is too old (`past/silence.py`), because
    they may have ended since then.
    """
    if tables is None and is_other_cluster:
        return None, []
    from streaming.cli.text.stored import NoClusterError, stored_cluster  # noqa: PLC0415 - slow to import
    from streaming.delta.stored import active_conditions  # noqa: PLC0415 - slow to import
    from streaming.delta.stored_table import NoTableError, TableReadError  # noqa: PLC0415 - slow to import
    from streaming.page.rendering import utc_text  # noqa: PLC0415 - slow to import
    from streaming.past.reader import PastReader  # noqa: PLC0415 - slow to import

    root = tables or settings.paths.tables
    try:
        name = stored_cluster(root, cluster if is_other_cluster else settings.kafka.cluster)
        rows, measurement = active_conditions(root, name), PastReader(root, name).measurement(now_ms())
    except (NoTableError, TableReadError, NoClusterError):
        if tables is not None:
            raise
        return None, []
    if not measurement.is_recent:
        last = "the tables contain no measurement of this cluster"
        if measurement.last_ms is not None:
            last = f"the last measurement in the tables is from {utc_text(measurement.last_ms)}"
        remedy = "check that the monitor runs. `rebalance-monitor history GROUP` shows the last known conditions"
        return None, [f"the active conditions are unknown, because {last}: {remedy}"]
    return {group_id: list(of_group) for group_id, of_group in groupby(rows, key=lambda row: row["group_id"])}, []


@dataclass(frozen=True, slots=True)
class _Filter:
    """Selects groups by the options --state and --type. If an option is set, an unknown value does not match."""

    states: Collection[str]
    group_types: Collection[str]

    def matches(self, group: AnsweredGroup) -> bool:
        return _is_among(group.state, self.states) and _is_among(group.group_type, self.group_types)

    def may_match(self, listed: ListedGroup) -> bool:
        """Return True if the group can match. An unknown value can match, because old brokers list no state or type."""
        return (listed.state is None or _is_among(listed.state, self.states)) and (
            listed.group_type is None or _is_among(listed.group_type, self.group_types)
        )


def _is_among(value: str | None, allowed: Collection[str]) -> bool:
    return not allowed or (value is not None and value.lower() in {each.lower() for each in allowed})


def _list_and_describe(requests: Groups, group_filter: _Filter) -> tuple[GroupListing, list[AnsweredGroup]]:
    """List the groups, then describe them. Ignore groups that were deleted between the two requests."""
    listing = requests.list_groups()
    candidates = {group_id: listed for group_id, listed in listing.groups.items() if group_filter.may_match(listed)}
    described = requests.describe_groups({group_id: listed.group_type for group_id, listed in candidates.items()})
    selected = []
    for group_id, description in sorted(described.items()):
        if isinstance(description, GroupNotFound):
            continue
        if isinstance(description, Unanswered):
            group = AnsweredGroup(group_id, candidates[group_id], None, description.reason)
        else:
            group = AnsweredGroup(group_id, candidates[group_id], description, None)
        if group_filter.matches(group):
            selected.append(group)
    return listing, selected


def _listing_warnings(listing: GroupListing) -> Iterator[str]:
    for gap in listing.gaps:
        where = "" if gap.broker_id is None else f"groups of broker {gap.broker_id} are missing: "
        yield where + _REASONS.get(gap.reason, gap.reason)


def _description_warnings(selected: Collection[AnsweredGroup]) -> Iterator[str]:
    reasons = Counter(group.not_reported for group in selected if group.not_reported)
    for reason, count in sorted(reasons.items()):
        yield f"the members of {count} groups are unknown: {_REASONS.get(reason, reason)}"
