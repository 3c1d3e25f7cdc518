"""`rebalance-monitor what-if`: the assignment of each strategy for a real group, also after a change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from assignors import AssignorFailedError, GroupAssignment, GroupSpec, MemberSubscription, UnknownAssignorError
from assignors.what_if.comparison import format_sizes
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
from assignors.what_if.what_if import what_if as computed
from streaming.cli.assign import assignor_option
from streaming.cli.logs import settings_of
from streaming.cli.run import config_option
from streaming.cli.text.fairness import evaluated, unfairness
from streaming.cli.text.shown import output_console, shown
from streaming.custom.catalogue import Catalogue
from streaming.errors import RemedyError
from streaming.evaluation.assignment.group_spec import assigned_partitions

COLUMNS = ("sizes", "score", "excess", "idle", "topic spread", "moves", "rounds")

Owners = Mapping[tuple[str, int], str]


class _Growth(click.ParamType[tuple[str, int]]):
    name = "TOPIC=COUNT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        topic, _, count = value.rpartition("=")
        if not topic or not count.isdecimal():
            self.fail(f"{value!r} is not TOPIC=COUNT, such as orders=24", param, ctx)
        return topic, int(count)


@click.command()
@click.argument("group")
@click.option("--strategy", "only", multiple=True, help="Compute only this strategy. Repeatable [default: all].")
@click.option("--members", default=0, help="Number of members that join, or leave if negative: +1, -2.")
@click.option(
    "--partitions", multiple=True, type=_Growth(), help="Increase this topic to COUNT partitions. Repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables of the settings].")
@click.option("--cluster", metavar="NAME", help="Use only this cluster, if the tables hold several.")
@config_option
@assignor_option
def what_if(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str,
    only: tuple[str, ...],
    members: int,
    partitions: tuple[tuple[str, int], ...],
    as_json: bool,
    tables: str | None,
    cluster: str | None,
    file: Path | None,
    references: tuple[str, ...],
) -> None:
    """Compute the assignment of each strategy for GROUP, from the partitions that its members hold today.

    The command reads the table `group_generations`. The partitions of a topic are counted up to the highest one that a
    member holds. Columns of the output:

    \b
    sizes          members x partitions: 2x3 is two members with three partitions each
    score          0 to 100; 100 is as fair as any valid assignment can be
    excess         partitions of the busiest member beyond the fairest possible maximum
    idle           members without a partition
    topic spread   largest difference between two subscribers of one topic
    moves          partitions that would move to a different member
    rounds         rebalances until the assignment is reached
    """  # noqa: D301 - click keeps the lines after a real backspace character
    change = Change(members, dict(partitions))
    try:
        spec, owners = group_of(_last_row(group, tables or settings_of(file).paths.tables, cluster))
        with Catalogue(references) as catalogue:
            strategies = [catalogue.assignor(name) for name in only or catalogue.names()]
            answer = computed(spec, owners, strategies, change)
    except (RemedyError, ImpossibleChangeError, AssignorFailedError, UnknownAssignorError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({"group": group, **what_if_as_json(answer)}, ensure_ascii=True))
        return
    _print(group, answer, measure_today(spec, owners))
    for line in _about_today(spec, owners, answer):
        output_console().print(line, highlight=False, soft_wrap=True)


def _last_row(group: str, root: str, cluster: str | None) -> Mapping[str, Any]:
    from streaming.delta.stored import stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.delta.tables import GROUP_GENERATIONS  # noqa: PLC0415 - as above

    rows = stored_rows(root, GROUP_GENERATIONS, group_id=group, cluster=cluster)
    if not rows:
        raise RemedyError(f"{root} has no group {group!r}: `rebalance-monitor groups` lists the groups there are")
    if len(clusters := sorted({row["cluster"] for row in rows})) > 1:
        raise RemedyError(f"several clusters have a group {group!r}: choose by --cluster one of {', '.join(clusters)}")
    if not rows[-1]["members"]:
        raise RemedyError(f"{group!r} has no members now (state {rows[-1]['state']}): nothing is assigned")
    return rows[-1]


def group_of(row: Mapping[str, Any]) -> tuple[GroupSpec, Owners]:
    """A row of `group_generations` as the strategies' input, and who shall hold what once the group is reconciled.

    >>> held = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]
    >>> member = {"member_id": "a", "group_instance_id": None, "rack_id": None, "subscription": ["t"], "target": held}
    >>> spec, owners = group_of({"members": [member]})
    >>> spec.partitions, owners
    ({'t': 2}, {('t', 0): 'a', ('t', 1): 'a'})
    """
    members = tuple(
        MemberSubscription(
            member["member_id"],
            tuple(member["subscription"] or ()),
            instance_id=member["group_instance_id"],
            rack=member["rack_id"],
        )
        for member in row["members"]
    )
    owners = {
        (held["topic"], held["partition"]): member["member_id"]
        for member in row["members"]
        for held in member["target"] or ()
        if held["topic"] is not None
    }
    return GroupSpec(members, assigned_partitions(owners)), owners


def _print(group: str, answer: WhatIf, now: Outcome) -> None:
    heading = f"{shown(group)}, {answer.change}: {answer.partitions} partitions over {answer.members} members"
    output_console().print(heading, highlight=False)
    table = Table(Column("strategy", no_wrap=True), *COLUMNS)
    for row in _rows(now, answer.outcomes):
        table.add_row(*row)
    output_console().print(table)


def _about_today(spec: GroupSpec, owners: Owners, answer: WhatIf) -> Iterator[str]:
    """What is wrong with today's assignment, and which strategy removes that; of a changed group that is not known."""
    held: dict[str, list[tuple[str, int]]] = {member.member_id: [] for member in spec.members}
    for topic_partition, member_id in sorted(owners.items()):
        held[member_id].append(topic_partition)
    total, skew = evaluated(
        spec, GroupAssignment({member_id: tuple(of_member) for member_id, of_member in held.items()})
    )
    wrong = list(unfairness(total, skew.topics if skew else 0)) if total else []
    if wrong:
        yield "Today: " + "; ".join(wrong) + "."
    best = choose_remedy(answer.outcomes) if wrong and answer.change == Change() else None
    if best is not None:
        noun = "partition" if best.moved_partitions == 1 else "partitions"
        yield f"{shown(best.strategy or '')} would remove that and move {best.moved_partitions} {noun}."


def _rows(now: Outcome, outcomes: Sequence[Outcome | FailedOutcome]) -> Iterator[Iterable[str]]:
    yield "(today)", *_cells(now)
    for outcome in outcomes:
        if isinstance(outcome, FailedOutcome):
            yield shown(outcome.strategy), shown(outcome.detail.partition("\n")[0])
        else:
            yield shown(outcome.strategy or ""), *_cells(outcome)


def _cells(outcome: Outcome) -> Iterator[str]:
    topic, spread = max(outcome.topic_spread.items(), key=lambda item: item[1], default=("", 0))
    yield format_sizes(outcome.sizes)
    yield "?" if outcome.score is None else f"{outcome.score:.0f}"
    yield "?" if outcome.excess_partitions is None else str(outcome.excess_partitions)
    yield str(len(outcome.idle_members))
    yield f"{spread} ({shown(topic)})" if spread else "0"
    yield str(outcome.moved_partitions)
    yield str(outcome.rounds) if outcome.rounds else ""
