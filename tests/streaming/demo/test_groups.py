"""Test the table of demo groups, and the demo's own strategy `affinity`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.key_partitioner import partition_for_key
from streaming.demo.affinity import affinity
from streaming.demo.groups import DEMO_GROUPS
from streaming.demo.load import DemoLoad
from streaming.demo.topics import CLICKS, DEMO_TOPICS

if TYPE_CHECKING:
    import random

_MEMBERS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)
_TOPICS = st.dictionaries(st.text(min_size=1, max_size=8), st.integers(0, 12), max_size=4)


def test_every_group_has_a_short_description_in_one_line():
    assert len({group.group_id for group in DEMO_GROUPS}) == len(DEMO_GROUPS)
    for group in DEMO_GROUPS:
        assert 20 <= len(group.shows) <= 110
        assert "\n" not in group.shows


def test_every_subscribed_topic_is_created_and_gets_records():
    """A topic that is not in the table would never be created, so its group would have no partitions."""
    assert {topic for group in DEMO_GROUPS for topic in group.topics} == set(DEMO_TOPICS)


def test_auto_sync_and_async_commits_all_occur():
    assert {group.commits for group in DEMO_GROUPS} == {"auto", "sync", "async"}


def test_only_one_group_of_the_demo_has_a_flapping_member():
    """All other groups must not change, so that their descriptions stay true."""
    flapping = [group.group_id for group in DEMO_GROUPS if any(member.absence_seconds for member in group.members)]
    assert flapping == ["demo-flapping"]


def test_most_records_of_the_hot_key_are_in_one_partition_and_each_partition_has_records():
    """Kafka's default partitioner puts "shop-1" into partition 2. The other members need some work, too."""
    records = Counter(partition_for_key(key.encode(), CLICKS.partitions) for key in CLICKS.keys)
    assert records == {2: 8, 1: 1, 0: 1}


def test_no_assignment_could_help_the_group_with_the_hot_key():
    """Otherwise the cause on the screen would be a different one. The other members keep up."""
    (group,) = (group for group in DEMO_GROUPS if group.group_id == "demo-hot-key")
    (seconds,) = {member.seconds_per_record for member in group.members}
    rates = sorted(CLICKS.records_per_second * CLICKS.keys.count(key) / len(CLICKS.keys) for key in set(CLICKS.keys))
    assert rates[-2] < 1 / seconds < rates[-1] / 2


def test_a_group_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match=r"unknown demo group demo-rang: the groups are .*demo-range"):
        DemoLoad("127.0.0.1:1", only={"demo-rang"})


@given(members=_MEMBERS, topics=_TOPICS)
def test_affinity_gives_each_partition_to_exactly_one_member(members: list[str], topics: dict[str, int]):
    """Otherwise the group would show partitions without an owner, not an unfair assignment."""
    assigned = affinity(members, topics)
    given_out = sorted((topic, number) for owned in assigned.values() for topic in owned for number in owned[topic])
    assert given_out == sorted((topic, number) for topic, partitions in topics.items() for number in range(partitions))
    assert set(assigned) == set(members)


@given(members=_MEMBERS, topics=_TOPICS, seed=st.randoms(use_true_random=False))
def test_affinity_does_not_depend_on_the_order_of_the_members(
    members: list[str], topics: dict[str, int], seed: random.Random
):
    """The broker can list members in any order."""
    shuffled = list(members)
    seed.shuffle(shuffled)
    assert affinity(shuffled, topics) == affinity(members, topics)
