"""Hypothesis strategies for random groups, with the kinds of groups that occur in issues and incidents."""

from __future__ import annotations

from hypothesis import strategies as st

from assignors.model import GroupSpec, MemberSubscription, TopicPartition

# Names contain any Unicode: also lone surrogates, characters beyond the basic plane, and NUL.
NAMES = st.sampled_from(["t0", "t1", "t2", "orders", "\ufffd", "\U0001f600", "\ud83d", "", "\x00"])
ANY_NAME = NAMES | st.text(st.characters(), max_size=4)
RACKS = st.sampled_from(["r0", "r1", "r2"])
STATIC = st.sampled_from(["i0", "i1", "\uffff", "\U00010000", ""])


@st.composite
def groups(draw: st.DrawFn, *, claims: bool = True) -> GroupSpec:
    """Draw any group: equal or different subscriptions, static members, racks, absent topics, conflicting claims."""
    topics = draw(st.lists(ANY_NAME, min_size=1, max_size=5, unique=True))
    counts = {topic: draw(st.integers(0, 7)) for topic in topics}
    known = {topic: count for topic, count in counts.items() if draw(st.integers(0, 9)) > 0}
    member_ids = draw(st.lists(ANY_NAME, max_size=8, unique=True))
    common = tuple(topics) if draw(st.booleans()) else None
    racks = draw(st.booleans())
    members = tuple(
        draw(_members(member_id, topics, common, counts, racks=racks, claims=claims)) for member_id in member_ids
    )
    replica_racks = {topic: draw(_replica_racks(count)) for topic, count in known.items()} if racks else {}
    return GroupSpec(members, known, replica_racks)


@st.composite
def clean_groups(draw: st.DrawFn) -> GroupSpec:
    """Draw a group whose claims do not conflict: each partition has at most one owner, all in one generation."""
    group = draw(groups(claims=False))
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
    for topic, count in sorted(group.partitions.items()):
        for number in range(
            count + draw(st.integers(0, 1))
        ):  # one more than exists: the topic was created again with fewer partitions
            owner = draw(st.sampled_from([None, *sorted(owned)]))
            if owner is not None:
                owned[owner].append((topic, number))
    return with_claims(group, {member_id: tuple(partitions) for member_id, partitions in owned.items()})


def with_claims(group: GroupSpec, owned: dict[str, tuple[TopicPartition, ...]], generation_id: int = 3) -> GroupSpec:
    """Return the group with the claims ``owned``. Members that are not in ``owned`` are new."""
    members = tuple(
        MemberSubscription(
            member.member_id,
            member.topics,
            member.instance_id,
            member.rack,
            owned.get(member.member_id, ()),
            generation_id if member.member_id in owned else -1,
        )
        for member in group.members
    )
    return GroupSpec(members, group.partitions, group.racks)


@st.composite
def _members(  # noqa: PLR0913 - one parameter for each kind of group
    draw: st.DrawFn,
    member_id: str,
    topics: list[str],
    common: tuple[str, ...] | None,
    counts: dict[str, int],
    *,
    racks: bool,
    claims: bool,
) -> MemberSubscription:
    subscription = common if common is not None else draw(st.lists(st.sampled_from(topics), unique=True))
    partitions = st.tuples(st.sampled_from([*topics, "gone"]), st.integers(0, max(counts.values()) + 1))
    return MemberSubscription(
        member_id,
        tuple(draw(st.permutations(subscription))),
        instance_id=draw(st.none() | STATIC.map(lambda instance: f"{instance}{member_id}")),
        rack=draw(st.none() | RACKS | st.just("")) if racks else None,
        owned=tuple(draw(st.lists(partitions, max_size=10, unique=True))) if claims else (),
        generation_id=draw(st.integers(-1, 5)) if claims else -1,
        user_data_version=draw(st.sampled_from([1, 1, 1, 0])) if claims else 1,
        subscription_generation=draw(st.sampled_from([None, None, -1])) if claims else None,
    )


@st.composite
def _replica_racks(draw: st.DrawFn, count: int) -> tuple[tuple[str | None, ...], ...]:
    replicas = st.lists(st.none() | RACKS, max_size=3).map(tuple)
    return tuple(draw(st.lists(replicas, min_size=max(0, count - 1), max_size=count)))
