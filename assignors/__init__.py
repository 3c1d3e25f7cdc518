"""What would strategy S assign? Every strategy a Kafka consumer group can run, as pure functions.

Standard library only. ``assignor_named("sticky").assign(group)`` is the whole of it; ``DESIGN.md`` has the file map.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from assignors.java_hash import hash_map_order
from assignors.model import (
    AssignorFailedError,
    GroupAssignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignor,
    TopicPartition,
)
from assignors.ordering import members_as_librdkafka, members_by_utf8
from assignors.range.range import RangeAssignor
from assignors.range.server_range import ServerRangeAssignor
from assignors.roundrobin import RoundRobinAssignor
from assignors.sticky.cooperative import CooperativeStickyAssignor
from assignors.sticky.sticky import StickyAssignor
from assignors.uniform.uniform import UniformAssignor

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AS_JAVA_LEADER",
    "AS_LEADER",
    "AS_LIBRDKAFKA_LEADER",
    "BUILT_IN",
    "AssignorFailedError",
    "GroupAssignment",
    "GroupSpec",
    "MemberSubscription",
    "PartitionAssignor",
    "TopicPartition",
    "UnknownAssignorError",
    "assignor_named",
]

_ASSIGNORS: tuple[PartitionAssignor, ...] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    CooperativeStickyAssignor(),
    UniformAssignor(),
    ServerRangeAssignor(),
)


def _named(*assignors: PartitionAssignor) -> Mapping[str, PartitionAssignor]:
    return MappingProxyType({assignor.name: assignor for assignor in assignors})


BUILT_IN: Mapping[str, PartitionAssignor] = _named(*_ASSIGNORS)
"""The strategies of Kafka 4.2 by name. ``server-range`` is KIP-848's ``range``: the client's has that name already."""

AS_JAVA_LEADER: Mapping[str, PartitionAssignor] = MappingProxyType(
    {
        **BUILT_IN,
        "sticky": StickyAssignor(hash_map_order),
        "cooperative-sticky": CooperativeStickyAssignor(hash_map_order),
    }
)
"""The same strategies as a Java client that leads the group computes them, to the last tie: what to compare it with.

``BUILT_IN`` meets members in the order of their ids, so that its answers do not hang on hash codes. The two differ
where not everybody can keep what it claims: in who does, hardly ever in how good the answer is.
"""


AS_LIBRDKAFKA_LEADER: Mapping[str, PartitionAssignor] = MappingProxyType(
    {
        **BUILT_IN,
        "range": RangeAssignor(members_as_librdkafka),
        "roundrobin": RoundRobinAssignor(members_as_librdkafka),
    }
)
"""The same strategies as a librdkafka client that leads the group computes them.

Range and roundrobin are exact where racks do not matter: librdkafka orders members otherwise than Java.
"""


AS_LEADER: Mapping[str, Mapping[str, PartitionAssignor]] = MappingProxyType(
    {
        "librdkafka": AS_LIBRDKAFKA_LEADER,
        "aiokafka": _named(RangeAssignor(members_by_utf8), RoundRobinAssignor(members_by_utf8)),
        "sarama": _named(RangeAssignor(members_by_utf8)),
    }
)
"""By client library the strategies that it computes otherwise than Java, where that can be replayed."""


class UnknownAssignorError(KeyError):
    """No built-in strategy has that name."""

    def __str__(self) -> str:
        """Show the message as it is; a KeyError would quote it like a key."""
        return str(self.args[0])


def assignor_named(name: str) -> PartitionAssignor:
    """Return the built-in strategy of that name; UnknownAssignorError lists the valid names.

    >>> assignor_named("range").name
    'range'
    """
    try:
        return BUILT_IN[name]
    except KeyError:
        raise UnknownAssignorError(f"no assignor is named {name!r}; there are {', '.join(BUILT_IN)}") from None
