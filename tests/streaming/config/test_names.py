"""Test the filter of names: patterns match whole names, and no name can make the match slow."""

from __future__ import annotations

import doctest
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.config.names
from streaming.config.names import NameFilter, PatternError, check_pattern


@pytest.mark.parametrize(
    ("allow", "deny", "name", "passes", "why"),
    [
        (".*", "", "anything", True, "rule 1: the default"),
        (".*", "", "", True, "rule 1: a group may have no name"),
        ("orders", "", "orders-2", False, "rule 1: the whole name, unlike in kafka_exporter"),
        ("orders", "", "my-orders", False, "rule 1: the whole name"),
        ("orders|payments", "", "payments", True, "rule 1: each alternative matches the whole name"),
        (".*", ".*-test", "orders-test", False, "rule 1: denied"),
        ("orders.*", "orders.*", "orders", False, "rule 1: deny overrides allow"),
        (".*", "a.*z", "a\nz", False, "rule 3: a dot matches a line break"),
        ("(?i)ORDERS", "", "orders", True, "flags are allowed"),
        ("^orders$", "", "orders", True, "anchors are allowed"),
        (r"commandes-\p{L}+", "", "commandes-été", True, "Unicode classes are supported"),
        (r"\?", "", "\ud800", True, "rule 4"),
    ],
)
def test_a_name_passes_by_the_rules(allow: str, deny: str, name: str, passes: bool, why: str) -> None:
    assert NameFilter(allow, deny).passing([name]).tolist() == [passes], why


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(payments", "missing )"),
        ("a)|(b", "unexpected )"),
        (r"\Qpayments", "missing )"),
        ("*", "no argument for repetition operator"),
        ("(?!test).*", "invalid perl operator"),
        (r"(\w+)\1", "invalid escape sequence"),
        ("((x{100}){100}){100}", "invalid repetition size"),
        ("\udcff", "surrogates not allowed"),
    ],
)
def test_an_invalid_expression_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    """The error comes when the settings are read, not at the first scrape."""
    with pytest.raises(PatternError, match=re.escape(reason)):
        check_pattern(pattern)


def test_names_from_clients_cannot_make_matching_slow() -> None:
    """Rule 2: for this name, Python's own engine would need exponential time."""
    assert not NameFilter("(a+)+").passing(["a" * 10_000 + "!"]).any()


@given(st.lists(st.text()), st.lists(st.text(alphabet="ab|.*")))
def test_the_result_for_a_name_does_not_depend_on_other_names(names: list[str], others: list[str]) -> None:
    """The result for a list equals the results for its single names."""
    name_filter = NameFilter("a.*|b", "ab")
    assert name_filter.passing(names + others).tolist() == [name_filter.passing([name])[0] for name in names + others]


@given(st.text(alphabet="ab\n.", max_size=6))
def test_the_result_is_that_of_pythons_engine_for_common_patterns(name: str) -> None:
    allow, deny = "a.*|b+", "a.b"
    expected = bool(re.fullmatch(allow, name, re.DOTALL)) and not re.fullmatch(deny, name, re.DOTALL)
    assert NameFilter(allow, deny).passing([name])[0] == expected


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(streaming.config.names).failed == 0
