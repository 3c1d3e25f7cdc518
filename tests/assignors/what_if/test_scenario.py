"""Tests of reading scenarios: fields, ignored fields, and errors with the name of the field."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.model import GroupSpec, MemberSubscription
from assignors.what_if.scenario import ScenarioError, decode_line, parse_scenario, scenario_id

MEMBER = {"member_id": "c0", "topics": ["t0"]}
SCENARIO = {"id": "s", "strategy": "range", "partitions": {"t0": 2}, "members": [MEMBER]}


def test_every_field_of_a_member_is_read():
    """The golden vectors have the same form."""
    fields = {
        "member_id": "c0",
        "instance_id": "i0",
        "rack": "r",
        "topics": ["t0"],
        "owned": [["t0", 1]],
        "generation": 7,
        "user_data_version": 0,
        "subscription_generation": -1,
    }
    racks, lags = {"t0": [["r", None], []]}, {"t0": [None, 9]}
    scenario = parse_scenario({**SCENARIO, "members": [fields], "racks": racks, "lag_records": lags})
    member = MemberSubscription("c0", ("t0",), "i0", "r", (("t0", 1),), 7, 0, -1)
    assert scenario.group == GroupSpec((member,), {"t0": 2}, {"t0": (("r", None), ())}, {("t0", 1): 9})
    assert (scenario.scenario_id, scenario.strategy) == ("s", "range")


def test_missing_fields_have_the_defaults_of_a_new_member():
    """A hand-written scenario can be short. Unknown fields are ignored."""
    scenario = parse_scenario({**SCENARIO, "colour": "red", "expected": 1})
    assert scenario.group.members == (MemberSubscription("c0", ("t0",)),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": None}, "members must be an array, not null"),
        ({"members": [3]}, "a member must be an object, not a whole number"),
        ({"members": [{"topics": []}]}, "member_id is missing"),
        ({"members": [{**MEMBER, "topics": "t0"}]}, "topics must be an array, not a string"),
        ({"members": [{**MEMBER, "owned": [["t0"]]}]}, "an owned partition must be a pair"),
        ({"members": [{**MEMBER, "owned": [["t0", "1"]]}]}, "the number of an owned partition must be a whole number"),
        ({"members": [{**MEMBER, "generation": True}]}, "generation must be a whole number, not true or false"),
        ({"members": [{**MEMBER, "rack": 3}]}, "rack must be a string"),
        ({"members": [{**MEMBER, "ownd": [["t0", 1]]}]}, "a member has the unknown field 'ownd': the fields are"),
        ({"members": [MEMBER, MEMBER]}, "two members have the same member_id"),
        ({"partitions": {"t0": 1.5}}, "the partition count of 't0' must be a whole number, not a fraction"),
        ({"partitions": {"t0": -1}}, "a partition count is negative"),
        ({"partitions": {"t0": 2**31}}, "more than 1000000 partitions"),
        ({"racks": {"t0": ["r"]}}, "the racks of a partition must be an array"),
        ({"lag_records": {"t0": 3}}, "the lags of 't0' must be an array"),
        ({"strategy": 1}, "strategy must be a string"),
    ],
)
def test_the_error_of_an_invalid_scenario_names_the_field(change: dict[str, Any], message: str):
    """The message names the field and the expected type."""
    with pytest.raises(ScenarioError, match=message):
        parse_scenario({**SCENARIO, **change})


@pytest.mark.parametrize("line", ["", "{", "[" * 100_000, "nul", "1" * 5000])
def test_a_line_that_is_not_json_is_a_scenario_error(line: str):
    """Python's reader can also fail because of the depth or the length of a number."""
    with pytest.raises(ScenarioError):
        decode_line(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from([*SCENARIO, "racks", "lag_records", *MEMBER, "x"]), inner)
    ),
)


@given(JSON)
def test_any_json_is_a_scenario_or_a_scenario_error(fields: object):
    """Input can be hostile. No other exception may reach the command line."""
    scenario_id(fields)
    with contextlib.suppress(ScenarioError):
        parse_scenario(fields)
