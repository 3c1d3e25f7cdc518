"""Which names are shown: whole names, in time that no name can stretch."""

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
        ("orders", "", "orders-2", False, "rule 1: the whole name; kafka_exporter's filters match a part"),
        ("orders", "", "my-orders", False, "rule 1: the whole name"),
        ("orders|payments", "", "payments", True, "rule 1: an alternative is between the ends, too"),
        (".*", ".*-test", "orders-test", False, "rule 1: denied"),
        ("orders.*", "orders.*", "orders", False, "rule 1: a denial wins"),
        (".*", "a.*z", "a\nz", False, "rule 3: a line break does not get round a denial"),
        ("(?i)ORDERS", "", "orders", True, "flags are the user's affair"),
        ("^orders$", "", "orders", True, "anchors out of habit do no harm"),
        (r"commandes-\p{L}+", "", "commandes-été", True, "letters are Unicode's"),
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
def test_what_is_no_expression_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    """Found when the settings are read, not at the first scrape of a night."""
    with pytest.raises(PatternError, match=re.escape(reason)):
        check_pattern(pattern)


def test_names_given_by_strangers_cannot_make_matching_slow() -> None:
    """Rule 2: on this name Python's own engine would be at it for longer than the universe is old."""
    assert not NameFilter("(a+)+").passing(["a" * 10_000 + "!"]).any()


@given(st.lists(st.text()), st.lists(st.text(alphabet="ab|.*")))
def test_each_name_is_judged_by_itself(names: list[str], others: list[str]) -> None:
    """Which other groups there are changes nothing."""
    asked = NameFilter("a.*|b", "ab")
    assert asked.passing(names + others).tolist() == [asked.passing([name])[0] for name in names + others]


@given(st.text(alphabet="ab\n.", max_size=6))
def test_it_is_what_everybody_knows_where_both_engines_know_it(name: str) -> None:
    allow, deny = "a.*|b+", "a.b"
    expected = bool(re.fullmatch(allow, name, re.DOTALL)) and not re.fullmatch(deny, name, re.DOTALL)
    assert NameFilter(allow, deny).passing([name])[0] == expected


def test_what_the_docstrings_show_is_true() -> None:
    assert doctest.testmod(streaming.config.names).failed == 0
