"""`rebalance-monitor assign` computes assignments and prints them as JSON, for scripts."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import BinaryIO

import click

from assignors import AssignorFailedError, UnknownAssignorError
from assignors.what_if.scenario import ScenarioError, answer_as_json, decode_line, parse_scenario, scenario_id
from streaming.cli.text.streams import input_lines
from streaming.custom.catalogue import Catalogue

assignor_option = click.option(
    "--assignor",
    "references",
    multiple=True,
    metavar="MODULE:ATTRIBUTE",
    help="Your own strategy. You can repeat this option. The command also uses all strategies that are entry points"
    " of installed packages.",
)


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@assignor_option
def assign(file: BinaryIO, references: tuple[str, ...]) -> None:
    """Compute the assignment for each scenario in FILE or on standard input.

    Each input line is one scenario as a JSON object:

    \b
    {"id": "a", "strategy": "range", "partitions": {"t0": 3},
     "members": [{"member_id": "c0", "topics": ["t0"]}]}

    Each member can also have "instance_id", "rack", "owned" ([[topic, partition], ...]) and "generation". For sticky,
    "user_data_version" is 0 if the member sent no generation, and "subscription_generation" is the generation that the
    member sent outside its userData. A scenario can also have "racks": {topic: [[rack, ...], ...]}. The outer list
    contains one list for each partition. An inner list contains the rack of each replica, or null for a replica whose
    broker has no rack. For your own strategies, a scenario can also have "lag_records": {topic: [lag, ...]}, with null
    for an unknown lag.

    Each output line is {"id", "assignment": {member_id: [[topic, partition], ...]}}. For cooperative-sticky, the line
    also has "rebalance_needed" and "assignment_after_second_round", because this strategy can need two rebalances. If a
    scenario fails, its output line is {"id", "error"}, and the exit code is 1.
    """  # noqa: D301 - click keeps the lines after a real backspace character
    failed = False
    try:
        catalogue = Catalogue(references)
    except AssignorFailedError as error:
        raise click.ClickException(str(error)) from error
    with closing(catalogue):
        for line in input_lines(file):
            if line.strip():
                answer = _compute_answer(line, catalogue)
                failed |= "error" in answer
                click.echo(json.dumps(answer, separators=(",", ":")))
    sys.exit(int(failed))


def _compute_answer(line: bytes, catalogue: Catalogue) -> dict[str, object]:
    fields: object = None
    try:
        fields = decode_line(line)
        scenario = parse_scenario(fields)
        assignor = catalogue.assignor(scenario.strategy)
        return answer_as_json(scenario, assignor.assign(scenario.group))
    except (ScenarioError, UnknownAssignorError, AssignorFailedError) as error:
        return {"id": scenario_id(fields), "error": str(error)}
