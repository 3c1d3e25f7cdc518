"""`rebalance-monitor what-if` computes the assignment of each strategy for a real group, as it is or after a change.

With `--offers`, the command shows the strategy of the group at each step of a rolling change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from assignors import AssignorFailedError, GroupAssignment, GroupSpec, MemberSubscription, UnknownAssignorError
from assignors.key_partitioner import share_of_moved_keys
from assignors.what_if.comparison import format_sizes
from assignors.what_if.rolling_change import Offer, Step, rolling_change
from assignors.what_if.topic_skew import choose_remedy
from assignors.what_if.what_if import (
    Change,
    FailedOutcome,
    ImpossibleChangeError,
    Outcome,
    WhatIf,
    measure_today,
    what_if_as_json,
)
from assignors.what_if.what_if import what_if as compute_what_if
from streaming.cli.assign import assignor_option
from streaming.cli.run import config_option
from streaming.cli.text.fairness import evaluate_fairness, fairness_problems
from streaming.cli.text.logs import load_settings_and_redact
from streaming.cli.text.terminal import escape_text, output_console, print_tables
from streaming.custom.catalogue import Catalogue
from streaming.errors import RemedyError
from streaming.evaluation.alternatives import MOST_PARTITIONS
from streaming.evaluation.assignment.assignment_inputs import assigned_partitions
from streaming.evaluation.assignment.leader import BROKER
from streaming.evaluation.assignment.library_strategies import LIBRARY_STRATEGIES
from streaming.evaluation.what_if.inputs import NO_ASSIGNMENT, UNKNOWN_MEMBER
from streaming.events import CLASSIC
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, COPARTITIONING_PROTOCOLS

COLUMNS = ("sizes", "score", "excess", "idle", "topic spread", "moves", "rounds")
_MAX_DIGITS = 9
REJECTED = "INCONSISTENT_GROUP_PROTOCOL"
"""Kafka's error if a member joins whose list has no strategy in common with the lists of all other members."""

Owners = Mapping[tuple[str, int], str]


class _TopicPartitionCount(click.ParamType[tuple[str, int]]):
    name = "TOPIC=COUNT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        topic, _, count = value.rpartition("=")
        if not topic or not count.isdecimal():
            self.fail(f"{value!r} is not TOPIC=COUNT, for example orders=24", param, ctx)
        if len(count) > _MAX_DIGITS:
            self.fail(f"the number of partitions of {topic!r} has more than {_MAX_DIGITS} digits", param, ctx)
        return topic, int(count)


@click.command()
@click.argument("group")
@click.option(
    "--strategy",
    "strategy_names",
    multiple=True,
    help="Compute only this strategy. You can repeat this option [default: all strategies].",
)
@click.option(
    "--members",
    default=0,
    help="Assume that this number of members joins (for example +1) or leaves (for example -2).",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    type=_TopicPartitionCount(),
    help="Assume that TOPIC has COUNT partitions. You can repeat this option.",
)
@click.option(
    "--offers",
    "offers",
    multiple=True,
    metavar="LISTS",
    help="Strategies that the members offer. The first --offers describes the members now. The second --offers"
    " describes the members after the first rolling restart, and so on. See the example.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables in the settings].")
@click.option("--cluster", metavar="NAME", help="Name of the cluster. Required if several clusters have this group.")
@config_option
@assignor_option
def what_if(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str,
    strategy_names: tuple[str, ...],
    members: int,
    topics: tuple[tuple[str, int], ...],
    offers: tuple[str, ...],
    as_json: bool,
    tables: str | None,
    cluster: str | None,
    file: Path | None,
    references: tuple[str, ...],
) -> None:
    """Compute the assignment of each strategy for GROUP.

    Each strategy starts from the current assignment, which the command reads from the table `group_generations`. The
    table has no partition counts, so the highest assigned partition of a topic counts as its last partition. Built-in
    strategies are computed as by Java clients and the group coordinator. Other libraries can differ. Columns:

    \b
    sizes          partitions of each member; 2x3 means that two members have three partitions each
    score          fairness score from 0 to 100; 100 means that no valid assignment is fairer
    excess         partitions of the busiest member, minus the maximum in the fairest assignment, for example 6 - 4 = 2
    idle           number of members without a partition
    topic spread   largest difference in partitions of one topic between two subscribers
    moves          number of partitions that would move to a different member
    rounds         number of rebalances until the group has the assignment

    With --offers, the command simulates a rolling change of partition.assignment.strategy, and shows the group's
    strategy after each step. The first --offers contains the lists that the members offer now. The second
    --offers contains the lists that the members offer after the first rolling restart, and so on. Separate the
    strategies of a list with commas. If the lists of the members differ, write one list for each member, separated by
    spaces. This example migrates a group to cooperative rebalances (KIP-429):

    \b
    rebalance-monitor what-if payments --offers range \\
        --offers cooperative-sticky,range --offers cooperative-sticky
    """  # noqa: D301 - click keeps the lines after a real backspace character
    change = Change(members, dict(topics))
    if offers and (strategy_names or references or change != Change()):
        raise click.UsageError("--offers cannot be combined with --strategy, --assignor, --members or --topic")
    try:
        table_folder = tables or load_settings_and_redact(file).paths.tables
        row = _read_last_row(group, table_folder, cluster)
        if offers:
            _print_rolling_change(group, row, offers, as_json=as_json)
            return
        spec, owners = parse_group_row(row)
        with closing(Catalogue(references)) as catalogue:
            strategies = [catalogue.assignor(name) for name in strategy_names or catalogue.names()]
            answer = compute_what_if(spec, owners, strategies, change)
    except (RemedyError, ImpossibleChangeError, AssignorFailedError, UnknownAssignorError) as error:
        raise click.ClickException(str(error)) from error
    moved_keys = compute_moved_keys(spec, change)
    if as_json:
        _print_json(group, answer, moved_keys)
    else:
        _print_table(group, answer, measure_today(spec, owners))
        today = _describe_today(spec, owners, answer, is_classic=row["group_type"] == CLASSIC)
        lines = (*today, *_describe_moved_keys(spec, change, moved_keys))
        output_console().print(*lines, sep="\n", highlight=False, soft_wrap=True)


def compute_moved_keys(spec: GroupSpec, change: Change) -> dict[str, Fraction]:
    """Return the share of keys that move to a different partition, for each topic that gets more partitions.

    The result does not contain topics without assigned partitions, because their current partition counts are unknown.

    >>> compute_moved_keys(GroupSpec((), {"t": 12, "u": 3}), Change(partitions={"t": 24, "u": 3}))
    {'t': Fraction(1, 2)}
    """
    return {
        topic: share_of_moved_keys(before, count)
        for topic, count in change.partitions.items()
        if count != (before := spec.partition_count(topic)) and before
    }


def _read_last_row(group: str, root: str, cluster: str | None) -> Mapping[str, Any]:
    """Return only the last row, because one row can contain thousands of members."""
    from streaming.cli.text.stored import no_row_error  # noqa: PLC0415 - a slow import would slow down --help
    from streaming.delta.stored import END, latest_rows, table_clusters  # noqa: PLC0415 - as above
    from streaming.delta.tables import GROUP_GENERATIONS  # noqa: PLC0415 - as above

    clusters = table_clusters(root, GROUP_GENERATIONS) if cluster is None else (cluster,)
    rows = [
        row for name in clusters for row in latest_rows(root, GROUP_GENERATIONS, 1, END, group_id=group, cluster=name)
    ]
    if not rows:
        raise no_row_error(root, cluster, group, "no members")
    if len(rows) > 1:
        names = ", ".join(row["cluster"] for row in rows)
        raise RemedyError(f"several clusters have a group {group!r}: set --cluster to one of {names}")
    (row,) = rows
    if not row["members"]:
        raise RemedyError(f"{group!r} has no members now (state {row['state']}): no partition is assigned")
    return row


def parse_group_row(row: Mapping[str, Any]) -> tuple[GroupSpec, Owners]:
    """Return the input of the strategies and the owner of each partition, from a row of `group_generations`.

    In a KIP-848 group, the target assignment defines the owners. Raises RemedyError if the group has no assignment that
    can be evaluated (`evaluation.what_if.inputs`, rule 1).

    >>> owned = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    >>> member = {"member_id": "a", "group_instance_id": None, "rack_id": None, "subscription": ["t"], "target": owned}
    >>> spec, owners = parse_group_row({"protocol_type": "consumer", "protocol": "range", "members": [member]})
    >>> spec.partitions, owners
    ({'t': 2}, {('t', 0): 'a', ('t', 1): 'a'})
    """
    if row["protocol_type"] != CONSUMER_PROTOCOL_TYPE or row["protocol"] in COPARTITIONING_PROTOCOLS:
        raise RemedyError(NO_ASSIGNMENT)
    if any(member["subscription"] is None or member["target"] is None for member in row["members"]):
        raise RemedyError(UNKNOWN_MEMBER)
    members = tuple(
        MemberSubscription(
            member["member_id"],
            tuple(member["subscription"]),
            instance_id=member["group_instance_id"],
            rack=member["rack_id"],
        )
        for member in row["members"]
    )
    owners = {
        (owned["topic"], owned["partition"]): member["member_id"]
        for member in row["members"]
        for owned in member["target"]
        if owned["topic"] is not None
    }
    partitions = assigned_partitions(owners)
    _check_partition_counts(partitions, owners)
    return GroupSpec(members, partitions), owners


def _check_partition_counts(partitions: Mapping[str, int], owners: Owners) -> None:
    """Raise RemedyError if a partition number is probably wrong.

    A wrong number is very large. So most of the partitions with lower numbers have no owner.
    """
    owned = Counter(topic for topic, _ in owners)
    unowned = {topic: count - owned[topic] for topic, count in partitions.items()}
    if sum(unowned.values()) > MOST_PARTITIONS:
        topic = max(unowned, key=lambda topic: unowned[topic])
        raise RemedyError(
            f"the partition count of {topic!r} is unknown: a member has partition {partitions[topic] - 1}, but only"
            f" {owned[topic]} partitions of the topic have an owner"
        )


def _print_json(group: str, answer: WhatIf, moved_keys: Mapping[str, Fraction]) -> None:
    shares = {topic: float(share) for topic, share in moved_keys.items()}
    document = {"group": group, **what_if_as_json(answer), "share_of_moved_keys": shares}
    click.echo(json.dumps(document, ensure_ascii=True))


def _print_table(group: str, answer: WhatIf, present: Outcome) -> None:
    heading = f"{escape_text(group)}, {answer.change}: {answer.partitions} partitions over {answer.members} members"
    output_console().print(heading, highlight=False)
    table = Table(Column("strategy", no_wrap=True), *COLUMNS)
    table.add_row("(today)", *_outcome_cells(present))
    for outcome in answer.outcomes:
        if isinstance(outcome, FailedOutcome):
            table.add_row(escape_text(outcome.strategy), escape_text(outcome.detail.partition("\n")[0]))
        else:
            table.add_row(escape_text(outcome.strategy or ""), *_outcome_cells(outcome))
    print_tables(table)


def _describe_today(spec: GroupSpec, owners: Owners, answer: WhatIf, *, is_classic: bool) -> Iterator[str]:
    """Describe the problems of today's assignment. For an unchanged group, also name the best remedy.

    Only the coordinator of a KIP-848 group has the strategies of the coordinator. Only members of a classic group have
    the other strategies.
    """
    owned: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in spec.members}
    for topic_partition, member_id in sorted(owners.items()):
        owned[member_id].append(topic_partition)
    total, skew = evaluate_fairness(
        spec, GroupAssignment({member_id: tuple(partitions) for member_id, partitions in owned.items()})
    )
    problems = list(fairness_problems(total, skew.topics if skew else 0)) if total else []
    if problems:
        yield "Today: " + "; ".join(problems) + "."
    servers = {one.name for one in LIBRARY_STRATEGIES[BROKER]}
    usable = (one for one in answer.outcomes if (one.strategy in servers) != is_classic)
    best = choose_remedy(usable) if problems and answer.change == Change() else None
    if best is not None:
        noun = "partition" if best.moved_partitions == 1 else "partitions"
        what = "this problem" if len(problems) == 1 else "these problems"
        condition = "If your client library has the strategy, " if is_classic else ""
        name = escape_text(best.strategy or "")
        yield f"{condition}{name} would remove {what} and move {best.moved_partitions} {noun}."


def _describe_moved_keys(spec: GroupSpec, change: Change, moved_keys: Mapping[str, Fraction]) -> Iterator[str]:
    for topic, share in moved_keys.items():
        counts = f"{spec.partition_count(topic)} to {change.partitions[topic]} partitions"
        yield (
            f"Warning: if {escape_text(topic)} grows from {counts}, Kafka's default partitioner writes"
            f" {float(share):.0%} of all keys to a different partition. The old records of these keys stay in the old"
            f" partition, so members can process records of one key in the wrong order."
        )


def _outcome_cells(outcome: Outcome) -> Iterator[str]:
    topic, spread = max(outcome.topic_spread.items(), key=lambda item: item[1], default=("", 0))
    yield format_sizes(outcome.sizes)
    yield "?" if outcome.score is None else f"{outcome.score:.0f}"
    yield "?" if outcome.excess_partitions is None else str(outcome.excess_partitions)
    yield str(len(outcome.idle_members))
    yield f"{spread} ({escape_text(topic)})" if spread else "0"
    yield str(outcome.moved_partitions)
    yield str(outcome.rounds) if outcome.rounds else ""


def _print_rolling_change(group: str, row: Mapping[str, Any], offers: Sequence[str], *, as_json: bool) -> None:
    """Print the strategy that the group chooses at each step. `row` is the group's last row in `group_generations`."""
    if row["group_type"] != CLASSIC:
        raise RemedyError(
            f"{group!r} is a group of type {row['group_type']}, and its members do not vote for a strategy: use"
            " --offers only for classic groups"
        )
    members = len(row["members"])
    steps = rolling_change([parse_offers(lists, members) for lists in offers])
    if as_json:
        click.echo(json.dumps({"group": group, "members": members, "steps": list(map(asdict, steps))}))
        return
    table = Table("step", "restarted", "offers", Column("chosen strategy", no_wrap=True), "rebalance protocol")
    for step in steps:
        table.add_row(*_step_cells(step, members))
    print_tables(table)
    for line in _remarks(steps, row["protocol"]):
        output_console().print(line, highlight=False, soft_wrap=True)


def parse_offers(lists: str, members: int) -> list[Offer]:
    """Return the list of strategies of each member. A single list is used for every member.

    Raises RemedyError if a strategy has no name, or if the number of lists is wrong.

    >>> parse_offers("cooperative-sticky,range", 2)
    [('cooperative-sticky', 'range'), ('cooperative-sticky', 'range')]
    >>> parse_offers("range sticky,range", 2)
    [('range',), ('sticky', 'range')]
    """
    offers = [tuple(offer.split(",")) for offer in lists.split()]
    if not offers or not all(name for offer in offers for name in offer):
        raise RemedyError(f"--offers {lists!r} contains an empty name: write for example --offers sticky,range")
    if len(offers) == 1:
        return offers * members
    if len(offers) != members:
        raise RemedyError(
            f"--offers {lists!r} contains {len(offers)} lists, but the group has {members} members: write one list for"
            " all members, or one list for each member"
        )
    return offers


def _step_cells(step: Step, members: int) -> Iterator[str]:
    yield f"restart {step.restart}" if step.restart else "now"
    first, last = step.restarted_at_least, step.restarted_at_most
    yield f"{last} of {members}" if first == last else f"{first} to {last} of {members}"
    yield escape_text(" and ".join(",".join(offer) for offer in step.offers))
    yield REJECTED if step.strategy is None else escape_text(step.strategy)
    yield "" if step.strategy is None else " and ".join(step.rebalance_protocols)


def _remarks(steps: Sequence[Step], present_strategy: str | None) -> Iterator[str]:
    chosen = steps[0].strategy
    if chosen is not None and present_strategy is not None and chosen != present_strategy:
        yield (
            f"The group uses {escape_text(present_strategy)} now, but with the lists of the first --offers, it would"
            f" choose {escape_text(chosen)}. Check the first --offers."
        )
    if any(step.strategy is None for step in steps):
        yield (
            f"{REJECTED}: the lists of the members have no strategy in common. The coordinator rejects members that"
            " join, and their consumers fail. First add the new strategy to the list of every member. Then remove the"
            " old strategy."
        )
