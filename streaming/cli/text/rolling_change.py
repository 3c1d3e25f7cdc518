"""Reads the option `--offers` of `what-if`, and prints the steps of a rolling change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.table import Column, Table

from assignors.what_if.rolling_change import Offer, Step, rolling_change
from streaming.cli.text.terminal import escape_text, output_console, print_tables
from streaming.errors import RemedyError
from streaming.events import CLASSIC

REJECTED = "INCONSISTENT_GROUP_PROTOCOL"
"""Kafka's error if a member joins, and no strategy is in the lists of all members."""


def print_rolling_change(group: str, row: Mapping[str, Any], offers: Sequence[str], *, as_json: bool) -> None:
    """Print the strategy that the group chooses at each step. `row` is the group's last row in `group_generations`.

    Raises RemedyError if the group is not a classic group, or if the lists are invalid.
    """
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
        table.add_row(*_cells(step, members))
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


def _cells(step: Step, members: int) -> Iterator[str]:
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
            f"{REJECTED}: no strategy is in the lists of all members. The coordinator rejects members that join, and"
            " their consumers fail. First add the new strategy to the list of every member. Then remove the old"
            " strategy."
        )
