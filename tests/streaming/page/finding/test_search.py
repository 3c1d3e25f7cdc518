"""Tests of the filters and the order of groups: rules 1 to 5 of search.py."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.page.addresses
import streaming.page.finding.paging
import streaming.page.finding.search
import streaming.page.links.grafana
import streaming.page.links.runbook
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import GroupLag, Members, Membership
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.page.addresses import Address
from streaming.page.application import Pages
from streaming.page.finding.paging import ROWS_PER_PAGE, page_of
from streaming.page.finding.search import FILTERS, SORTS, Search, count_values, search_of
from streaming.page.overview import Overview, OverviewEntry
from tests.streaming.page.scene import HOSTILE_NAMES, Member, generation, record_of, scene
from tests.streaming.page.test_application import Seen, ask, pages_of


@pytest.mark.parametrize(
    "module",
    [
        streaming.page.finding.search,
        streaming.page.finding.paging,
        streaming.page.addresses,
        streaming.page.links.grafana,
        streaming.page.links.runbook,
    ],
)
def test_the_examples_in_the_docstrings_are_correct(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def _group(group_id: str, topic: str, client: str, lag: int | None, team: str = "", storm: bool = False) -> GroupReport:  # noqa: PLR0913, PLR0917 - the values that filters compare
    """Return the report of a group with one member on the host 10.4.<length of the client>.<last character>."""
    snapshot = record_of(group_id, [generation(1, 10, "range", [Member(client, [topic])])]).snapshot
    return GroupReport(
        group_id,
        Membership("classic", "Stable" if client else "Empty", protocol="range" if storm else "sticky", members=1),
        members=Members(snapshot),
        limits=GroupLimits(team=team),
        lag=GroupLag(records=lag),
        conditions=(Condition("rebalance_storm", 0, ""),) if storm else (),
        committed_topics=(f"{topic}-committed",),
    )


GROUPS = (
    _group("Billing", "orders", "app-a", 5, "payments", storm=True),
    _group("ledger", "payments", "longer-b", None, "payments"),
    _group("search", "clicks", "app-c", 900, "discovery"),
    _group("orphan", "audit", "app-d", 0),
)


def _found(query: str) -> list[str]:
    overview = Overview(tuple(OverviewEntry(group, "prod", is_lag_known=True) for group in GROUPS), 0)
    return [one.group.group_id for one in overview.find(search_of(Address("/", query)))]


@dataclass
class Case:
    """A query, the groups that it finds in this order, and the reason."""

    query: str
    found: list[str]
    why: str


ALL = ["Billing", "ledger", "search", "orphan"]


@pytest.mark.parametrize(
    "case",
    [
        Case("", ALL, "without parameters, the order of the troubles"),
        Case("q=LEDG", ["ledger"], "rule 1: upper and lower case are equal"),
        Case("q=billing", ["Billing"], "rule 1: also in the name"),
        Case("topic=order", ["Billing"], "rule 1: a part of a topic name is enough"),
        Case("topic=audit-committed", ["orphan"], "a group reads the topics that it committed"),
        Case("topic=nothing", [], "no group reads it"),
        Case("host=10.4.5.", ["Billing", "search", "orphan"], "rule 1: all hosts of a subnet"),
        Case("host=/10.4.8", [], "Kafka's slash is not a part of the name of a host"),
        Case("trouble=rebalance+storm", ["Billing"], "rule 2: the word of a trouble"),
        Case("trouble=rebalance", [], "rule 2: not a part of the word"),
        Case("state=Stable", ALL, "all groups have this state"),
        Case("state=stable", [], "rule 2: the value must be equal"),
        Case("strategy=range", ["Billing"], "rule 2"),
        Case("team=payments", ["Billing", "ledger"], "rule 2"),
        Case("team=payments&trouble=rebalance+storm", ["Billing"], "rule 3: both filters"),
        Case("team=payments&topic=clicks", [], "rule 3: no group matches both filters"),
        Case("team=&q=&state=", ALL, "rule 3: an empty field of the form is no filter"),
        Case("unknown=x", ALL, "other parameters are no filters"),
        Case("sort=name", ["Billing", "ledger", "orphan", "search"], "rule 4: upper and lower case are equal"),
        Case("sort=lag", ["search", "Billing", "orphan", "ledger"], "rule 4: 0 comes before unknown"),
        Case("sort=team", ["search", "Billing", "ledger", "orphan"], "rule 4: a group without a team comes last"),
        Case("sort=topic", ["orphan", "search", "Billing", "ledger"], "rule 5: the first topic counts"),
        Case("sort=host", ["orphan", "Billing", "search", "ledger"], "rule 5: alphabetical, so .100 before .97"),
        Case("sort=members", ALL, "rule 4: equal values keep the order of the troubles"),
        Case("sort=no-such", ALL, "rule 4: an unknown order is the default"),
        Case("team=payments&sort=lag", ["Billing", "ledger"], "filter and order together"),
    ],
    ids=lambda case: case.query or "nothing",
)
def test_filters_and_order(case: Case) -> None:
    assert _found(case.query) == case.found, case.why


@given(
    st.dictionaries(st.sampled_from(FILTERS), st.sampled_from(["a", "payments", "range", "Stable", *HOSTILE_NAMES])),
    st.sampled_from(sorted(SORTS)),
)
def test_a_link_finds_the_same_groups_as_the_form_and_can_remove_each_filter(
    filters: dict[str, str], sort: str
) -> None:
    """The form sends plain text. Links encode it. Both must find the same groups, for every text."""
    address = Address("/", Address("/", "").change(**filters, sort=sort).partition("?")[2])
    assert search_of(address) == Search({name: filters[name] for name in FILTERS if name in filters}, sort)
    for name in filters:
        without = Address("/", address.change(**{name: None}).partition("?")[2])
        assert name not in search_of(without).filters
        assert search_of(without).sort == sort


@given(st.permutations(GROUPS), st.sampled_from(sorted(SORTS)))
def test_sorting_loses_no_group(groups: list[GroupReport], sort: str) -> None:
    overview = Overview(tuple(OverviewEntry(group, "prod", is_lag_known=True) for group in groups), 0)
    assert sorted(one.group.group_id for one in overview.find(Search(sort=sort))) == sorted(ALL)


def test_the_form_offers_each_value_with_the_number_of_groups() -> None:
    """A choice that finds no group wastes the time of an engineer."""
    choices = count_values(GROUPS)
    assert choices["team"] == {"payments": 2, "discovery": 1}, "no entry for groups without a team"
    assert choices["trouble"] == {"rebalance storm": 1}
    for name, counts in choices.items():
        for value, groups in counts.items():
            query = Address("/", "").change(**{name: value}).partition("?")[2]
            assert len(_found(query)) == groups


@given(st.integers(0, 400), st.one_of(st.integers(0, 500).map(str), st.text(max_size=5)))
def test_every_row_is_on_exactly_one_page(total: int, given_from: str) -> None:
    """Also with a wrong number in the address, or if the list became shorter since the last request."""
    address = Address("/t", Address("/t", "").change(start=given_from, cluster="eu").partition("?")[2])
    page = page_of(range(total), address, "start", "rows")
    assert list(page.rows) == list(range(total))[max(page.first - 1, 0) : page.last]
    seen, link = list[int](), page_of(range(total), Address("/t", "cluster=eu"), "start", "rows")
    while True:
        assert len(link.rows) <= ROWS_PER_PAGE
        seen += link.rows
        if link.after is None:
            break
        query = link.after.removeprefix("/t?").removesuffix("#rows")
        assert "cluster=eu" in query, "a link keeps the other parameters"
        link = page_of(range(total), Address("/t", query), "start", "rows")
    assert seen == list(range(total))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    tables = tmp_path_factory.mktemp("tables")
    return pages_of(scene(tables).monitor_state, tables)


def test_the_form_keeps_all_values_and_the_page_does_not_reload_while_somebody_types(pages: Pages) -> None:
    """Browsers clear typed text when a page reloads itself. So the page with the form does not reload."""
    query = "q=bill&trouble=no+such+word&state=Stable&topic=orders&host=10.4&sort=lag"
    form, result = ask(pages, f"/?find=1&{query}").text, ask(pages, f"/?{query}").text
    assert 'http-equiv="refresh"' not in form
    assert 'http-equiv="refresh"' in result, "the result reloads again"
    for name, value in (("q", "bill"), ("topic", "orders"), ("host", "10.4")):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', form)
    for value in ("no such word", "Stable", "lag"):
        assert f'<option value="{value}" selected>' in form, "also a value that no group has now"


def test_each_active_filter_has_a_link_that_removes_only_this_filter(pages: Pages) -> None:
    links = Seen(ask(pages, "/?q=bill&state=Stable&sort=lag&limit=7").text).links
    assert {"/?state=Stable&sort=lag&limit=7", "/?q=bill&sort=lag&limit=7"} <= set(links)
    assert "/?q=bill&state=Stable&limit=7&sort=team" not in links, "no group has a team, so there is no such column"
    assert "/?q=bill&state=Stable&limit=7&sort=members" in links


def test_the_columns_of_topics_and_hosts_link_to_their_pages(pages: Pages) -> None:
    assert "/topics/audit" in Seen(ask(pages, "/?topic=audit").text).links
    assert "/hosts/10.4.7.97" in Seen(ask(pages, "/?sort=host").text).links
