"""The assignment strategies of Kafka consumer groups, written as pure functions.

Start with ``assignor_named("sticky").assign(group)``. ``DESIGN.md`` describes the files. The package imports only the
standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from assignors.java_hash import hash_map_order
from assignors.key_partitioner import partition_for_key
from assignors.model import (
    AssignorFailedError,
    GroupAssignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignor,
    TopicPartition,
)
from assignors.ordering import members_as_librdkafka, members_by_utf8
from assignors.range.range import RangeAssignor, ServerRangeAssignor
from assignors.roundrobin import RoundRobinAssignor
from assignors.sticky.cooperative import CooperativeStickyAssignor
from assignors.sticky.sticky import StickyAssignor
from assignors.uniform.uniform import UniformAssignor

__all__ = [
    "AS_JAVA_LEADER",
    "AS_LEADER",
    "BUILT_IN",
    "AssignorFailedError",
    "GroupAssignment",
    "GroupSpec",
    "MemberSubscription",
    "PartitionAssignor",
    "TopicPartition",
    "UnknownAssignorError",
    "assignor_named",
    "partition_for_key",
]


def _by_name(*assignors: PartitionAssignor) -> Mapping[str, PartitionAssignor]:
    return MappingProxyType({assignor.name: assignor for assignor in assignors})


BUILT_IN: Mapping[str, PartitionAssignor] = _by_name(
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    CooperativeStickyAssignor(),
    UniformAssignor(),
    ServerRangeAssignor(),
)
"""The strategies of Kafka 4.2 by name.

``server-range`` is the ``range`` of KIP-848. This package uses a different name, because the client strategy already
has the name ``range``.
"""

AS_JAVA_LEADER: Mapping[str, PartitionAssignor] = _by_name(
    *BUILT_IN.values(), StickyAssignor(hash_map_order), CooperativeStickyAssignor(hash_map_order)
)
"""The strategies by name. They compute exactly the assignments of a Java client that is the group leader.

To check a recorded assignment, compare it with the results of these strategies. Java visits members in the order of a
``HashMap``, and ``BUILT_IN`` visits members in the order of their ids. So the results can differ, but they are almost
always equally balanced.
"""

AS_LEADER: Mapping[str, Mapping[str, PartitionAssignor]] = MappingProxyType(
    {
        "librdkafka": _by_name(
            *BUILT_IN.values(), RangeAssignor(members_as_librdkafka), RoundRobinAssignor(members_as_librdkafka)
        ),
        "aiokafka": _by_name(RangeAssignor(members_by_utf8), RoundRobinAssignor(members_by_utf8)),
        "sarama": _by_name(RangeAssignor(members_by_utf8)),
    }
)
"""Maps the name of a client library to the strategies of a leader that uses this library.

If racks do not matter, range and roundrobin of ``librdkafka`` compute exactly the assignments of a librdkafka client
that is the leader.
"""


class UnknownAssignorError(KeyError):
    """Error: no built-in strategy has the requested name."""

    def __str__(self) -> str:
        """Return the message without the quotes that ``KeyError.__str__`` adds."""
        return str(self.args[0])


def assignor_named(name: str) -> PartitionAssignor:
    """Return the built-in strategy with this name.

    Raises UnknownAssignorError if no built-in strategy has this name. The error message lists the valid names.

    >>> assignor_named("range").name
    'range'
    """
    try:
        return BUILT_IN[name]
    except KeyError:
        raise UnknownAssignorError(
            f"no assignor is named {name!r}; the valid names are {', '.join(BUILT_IN)}"
        ) from None
