"""Java's order of strings and members, which every assignment depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assignors.model import GroupSpec, MemberSubscription


def utf16_key(text: str) -> bytes:
    r"""Order as Java's ``String.compareTo``: by UTF-16 code units.

    Python compares code points, which differs above U+FFFF: Java puts U+1F600 (units D83D DE00) before U+FFFD. Lone
    surrogates, which a name decoded from broken UTF-8 can hold, keep their place.

    >>> sorted(["\ufffd", "\U0001f600"], key=utf16_key) == ["\U0001f600", "\ufffd"]
    True
    """
    return text.encode("utf-16-be", "surrogatepass")


def sorted_names(names: Iterable[str]) -> list[str]:
    """Sort names in Java's order. ASCII names, which is nearly all, sort alike in both and need no key."""
    listed = list(names)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=utf16_key)


def members_by_id(group: GroupSpec) -> list[MemberSubscription]:
    """Sort members by member id: the order of the sticky and the uniform strategies."""
    if all(member.member_id.isascii() for member in group.members):
        return sorted(group.members, key=lambda member: member.member_id)
    return sorted(group.members, key=lambda member: utf16_key(member.member_id))


def members_static_first(group: GroupSpec) -> list[MemberSubscription]:
    """Sort members as ``AbstractPartitionAssignor.MemberInfo`` does: the order of range and roundrobin (KIP-345).

    Static members come first, by instance id, so that a restarted one keeps its place; then dynamic ones by member id.
    Two members with one instance id, which the coordinator never lets live side by side, are told apart by member id.
    """
    return sorted(group.members, key=_static_first)


def _static_first(member: MemberSubscription) -> tuple[bool, bytes, bytes]:
    instance = b"" if member.instance_id is None else utf16_key(member.instance_id)
    return member.instance_id is None, instance, utf16_key(member.member_id)
