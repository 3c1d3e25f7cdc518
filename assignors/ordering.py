"""Sorts names and members as Java, librdkafka and other clients do.

Every assignment depends on the order of names and members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from itertools import groupby

from assignors.model import GroupSpec, MemberSubscription

MemberOrder = Callable[[GroupSpec], list[MemberSubscription]]


def utf16_key(text: str) -> bytes:
    r"""Return a sort key for the order of Java's ``String.compareTo``, which compares UTF-16 code units.

    Python compares code points. Java and Python sort names differently if a name contains a character above U+FFFF. For
    example, Java puts U+1F600 (units D83D DE00) before U+FFFD. ``text`` may contain lone surrogates, because a name can
    come from invalid UTF-8.

    >>> sorted(["\ufffd", "\U0001f600"], key=utf16_key) == ["\U0001f600", "\ufffd"]
    True
    """
    return text.encode("utf-16-be", "surrogatepass")


def sorted_names(names: Iterable[str]) -> list[str]:
    """Sort names in Java's order. ASCII names need no sort key, because Java and Python sort them in the same order."""
    listed = list(names)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=utf16_key)


def members_by_id(group: GroupSpec) -> list[MemberSubscription]:
    """Sort members by member id, as the sticky and uniform strategies do."""
    if all(member.member_id.isascii() for member in group.members):
        return sorted(group.members, key=lambda member: member.member_id)
    return sorted(group.members, key=lambda member: utf16_key(member.member_id))


def members_static_first(group: GroupSpec) -> list[MemberSubscription]:
    """Sort members as ``AbstractPartitionAssignor.MemberInfo`` does, for range and roundrobin.

    Static members come first, sorted by instance id. So the position of a static member stays the same after a restart
    (KIP-345). Dynamic members follow, sorted by member id.
    """

    def key(member: MemberSubscription) -> tuple[bool, bytes, bytes]:
        instance = b"" if member.instance_id is None else utf16_key(member.instance_id)
        return member.instance_id is None, instance, utf16_key(member.member_id)

    return sorted(group.members, key=key)


def members_as_librdkafka(group: GroupSpec) -> list[MemberSubscription]:
    """Sort members as ``rd_kafka_group_member_cmp`` does, for range and roundrobin of librdkafka 1.4 and later.

    Two static members are compared by instance id. All other pairs of members are compared by member id. So a dynamic
    member can come before a static member. Ids are compared as UTF-8 bytes. Comparisons by instance id and by member id
    can contradict each other. Example: A and B are static members, and C is dynamic. A is before B by instance id, B is
    before C by member id, and C is before A by member id. If comparisons contradict each other, the result of
    librdkafka depends on the order of its input (`has_one_order_in_librdkafka`).

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("pod-0-5f", (), instance_id="pod-0"), Member("app-77", ())), {})
    >>> [member.member_id for member in members_as_librdkafka(group)]
    ['app-77', 'pod-0-5f']
    """
    return sorted(members_by_utf8(group), key=cmp_to_key(_compare_as_librdkafka))


def has_one_order_in_librdkafka(group: GroupSpec) -> bool:
    """Return False if the comparisons of ``members_as_librdkafka`` contradict each other.

    They contradict each other if a dynamic member is between two static members by member id, and the instance ids of
    these two members have the opposite order.
    """
    runs = groupby(members_by_utf8(group), key=lambda member: member.instance_id is None)
    static = [
        sorted(utf8_key(member.instance_id or "") for member in run) for is_dynamic, run in runs if not is_dynamic
    ]
    instance_ids = [instance_id for run in static for instance_id in run]
    return instance_ids == sorted(instance_ids)


def members_by_utf8(group: GroupSpec) -> list[MemberSubscription]:
    """Sort all members by member id, compared as UTF-8 bytes, as aiokafka, sarama and kafka-go do."""
    return sorted(group.members, key=lambda member: utf8_key(member.member_id))


def utf8_key(text: str) -> bytes:
    r"""Return a sort key for the order of C's ``memcmp`` on UTF-8, which is the order of code points.

    >>> sorted(["\ufffd", "\U0001f600"], key=utf8_key) == ["\ufffd", "\U0001f600"]
    True
    """
    return text.encode("utf-8", "surrogatepass")


def _compare_as_librdkafka(left: MemberSubscription, right: MemberSubscription) -> int:
    if left.instance_id is not None and right.instance_id is not None:
        first, second = utf8_key(left.instance_id), utf8_key(right.instance_id)
    else:
        first, second = utf8_key(left.member_id), utf8_key(right.member_id)
    return (first > second) - (first < second)
