"""Tests of the order of names and members (UTF-16 code units; KIP-345)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assignors.model import GroupSpec, MemberSubscription
from assignors.ordering import (
    has_one_order_in_librdkafka,
    members_as_librdkafka,
    members_by_id,
    members_static_first,
    sorted_names,
    utf8_key,
    utf16_key,
)

ANY_TEXT = st.text(st.characters())  # with surrogates, because a name can come from bytes that are not UTF-8


def test_a_supplementary_character_sorts_before_the_last_block_of_the_basic_plane():
    """U+1F600 is D83D DE00 in UTF-16, which is below U+FFFD. Python's own order is the opposite."""
    assert sorted_names(["\ufffd", "\U0001f600"]) == ["\U0001f600", "\ufffd"]
    assert sorted(["\ufffd", "\U0001f600"]) == ["\ufffd", "\U0001f600"]


def test_a_lone_surrogate_can_be_sorted():
    """A broken name must not stop an assignment."""
    assert sorted_names(["\ud83d", "a", "\U0001f600"]) == ["a", "\ud83d", "\U0001f600"]


@given(st.lists(ANY_TEXT))
def test_names_sort_as_their_code_units_do(names: list[str]):
    """The shortcut for ASCII names must give the same order."""
    assert sorted_names(names) == sorted(names, key=utf16_key)


def test_static_members_come_first_by_instance_id_then_dynamic_ones_by_member_id():
    """KIP-345: a static member gets a new member id at each restart, but keeps its place."""
    static = [MemberSubscription("z1", (), instance_id="b"), MemberSubscription("z2", (), instance_id="a")]
    dynamic = [MemberSubscription("c2", ()), MemberSubscription("c1", ())]
    ordered = members_static_first(GroupSpec((*dynamic, *static), {}))
    assert [member.member_id for member in ordered] == ["z2", "z1", "c1", "c2"]


def test_an_empty_instance_id_is_still_static():
    """Only a member without an instance id is dynamic."""
    members = (MemberSubscription("a", ()), MemberSubscription("b", (), instance_id=""))
    assert [member.member_id for member in members_static_first(GroupSpec(members, {}))] == ["b", "a"]


@given(st.sets(ANY_TEXT))
def test_members_by_id_sort_as_their_ids_do(member_ids: set[str]):
    """The order of the input must have no effect."""
    group = GroupSpec(tuple(MemberSubscription(member_id, ()) for member_id in member_ids), {})
    assert [member.member_id for member in members_by_id(group)] == sorted(member_ids, key=utf16_key)


def test_librdkafka_compares_two_static_members_by_instance_id_and_all_others_by_member_id():
    """``rd_kafka_group_member_cmp`` is unchanged since 1.4. Unlike in Java, static members do not come first."""
    members = (
        MemberSubscription("zz0-5f", (), instance_id="zz0"),
        MemberSubscription("b-9", (), instance_id="b"),
        MemberSubscription("b-a-1", (), instance_id="b-a"),
        MemberSubscription("aa9-77", ()),
        MemberSubscription("\N{ROCKET}", ()),
        MemberSubscription("\N{REPLACEMENT CHARACTER}", ()),
    )
    ordered = [member.member_id for member in members_as_librdkafka(GroupSpec(members, {}))]
    assert ordered == ["aa9-77", "b-9", "b-a-1", "zz0-5f", "\N{REPLACEMENT CHARACTER}", "\N{ROCKET}"]
    assert sorted(["\N{ROCKET}", "\ud800"], key=utf8_key) == ["\ud800", "\N{ROCKET}"], "lone surrogates do not raise"


CONTRADICTION = (
    MemberSubscription("a-f3", (), instance_id="a"),
    MemberSubscription("a-0-77", (), instance_id="a-0"),
    MemberSubscription("a-5-9", ()),
)
"""``a`` is before ``a-0`` by instance id, ``a-0`` is before ``a-5`` and ``a-5`` is before ``a`` by member id."""


def test_librdkafka_has_several_orders_if_its_comparisons_contradict_each_other():
    """Before, two of three possible assignments of such a group were drift."""
    assert not has_one_order_in_librdkafka(GroupSpec(CONTRADICTION, {}))
    assert has_one_order_in_librdkafka(GroupSpec(CONTRADICTION[:2], {})), "two static members cannot contradict"


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.sampled_from("abcdef")), unique_by=lambda one: one[0])
)
def test_the_order_of_librdkafka_depends_on_its_input_exactly_if_comparisons_contradict(
    ids: list[tuple[str, str | None]],
):
    """An order exists exactly if the sorted members agree with the comparison of each pair."""
    static = [instance_id for _, instance_id in ids if instance_id is not None]
    if len(set(static)) < len(static):
        return  # the coordinator accepts each instance id only once
    group = GroupSpec(tuple(MemberSubscription(one, (), instance_id=instance_id) for one, instance_id in ids), {})
    ordered = members_as_librdkafka(group)
    agrees = all(
        members_as_librdkafka(GroupSpec((first, second), {})) == [first, second]
        for place, first in enumerate(ordered)
        for second in ordered[place + 1 :]
    )
    assert has_one_order_in_librdkafka(group) == agrees
