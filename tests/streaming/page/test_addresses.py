"""Tests that every possible group name has an address on the page."""

from __future__ import annotations

import doctest
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streaming.page.addresses
from streaming.page.addresses import GROUP_PAGE, addressed_name, group_address
from tests.streaming.page.scene import HOSTILE_NAMES

ANY_NAME = st.text(st.characters(), max_size=40)


def path_and_query(address: str) -> tuple[str, str]:
    """Return the path after the prefix, and the query, as a WSGI server passes them for this address."""
    parts = urlsplit(urljoin("http://monitor/", address))
    path = unquote(parts.path, "iso-8859-1")
    assert path.startswith(GROUP_PAGE)
    return path.removeprefix(GROUP_PAGE), parts.query


@given(ANY_NAME)
@example("..")
@example("")
@example("\ud800/?#%2F")
def test_an_address_leads_back_to_its_group(group_id: str) -> None:
    """Rules 1 to 3. A browser removes `..` from a path, so such a name must not be in the path."""
    address = group_address(group_id)
    assert address.isascii()
    assert addressed_name(*path_and_query(address)) == group_id


@given(ANY_NAME, ANY_NAME)
def test_two_groups_never_share_an_address(one: str, other: str) -> None:
    assert (group_address(one) == group_address(other)) == (one == other)


@pytest.mark.parametrize("group_id", HOSTILE_NAMES)
def test_no_name_adds_html_characters_or_path_segments_to_its_address(group_id: str) -> None:
    address = group_address(group_id)
    assert not set(address) & set("<>\"'&# \n")
    assert address.count("/") == GROUP_PAGE.count("/")


@pytest.mark.parametrize("rest", ["\xff", "\xc3", "\xed\xa0", "\u1234"])
def test_bytes_that_are_not_a_name_address_no_group(rest: str) -> None:
    assert addressed_name(rest, "") in {None, "?"}


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.addresses).failed == 0
