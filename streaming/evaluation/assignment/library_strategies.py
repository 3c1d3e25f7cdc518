"""The strategies that a group can use. The remedy of a topic skew and the advice for a late group name only these.

Only the library of the group's leader matters, because the leader computes the assignments. Rules:

1. If the group coordinator computes the assignments (KIP-848), the group can use only the coordinator's assignors.
2. If the leader's library is recognised, the group can use the strategies in `LIBRARY_STRATEGIES`. Each strategy is
   computed as a leader with this library computes it, if `AS_LEADER` has the algorithm. Otherwise, the strategy is
   computed as Java computes it.
3. A strategy is not in `LIBRARY_STRATEGIES` if its result is unknown, or if a rolling restart cannot introduce it.
   kafka-go and sarama have a `roundrobin` of their own, and sarama up to 1.34.1 has a `range` of its own. KafkaJS and
   Faust have only strategies of their own. A client with librdkafka refuses to start if its list contains an eager and
   a cooperative strategy.
4. A kafka-python leader crashes with `roundrobin` if the subscriptions differ. With `range` and `roundrobin`, some
   static members get no partitions. So a group of kafka-python can use these two strategies only if all members are
   dynamic and have equal subscriptions.
5. If several libraries are candidates, the group can use only the strategies that all candidates have. All candidates
   must compute the same assignment for the group.
6. If there are no candidates, it is unknown which strategies the group can use. Java's bytes are always recognised.
7. If members of a librdkafka group have racks, or if librdkafka has no unique order of the members, the results of
   `range` and `roundrobin` are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from assignors import AS_JAVA_LEADER, AS_LEADER, BUILT_IN, GroupSpec, PartitionAssignor
from assignors.ordering import has_one_order_in_librdkafka
from assignors.racks import member_rack
from streaming.evaluation.assignment.consumer_drift import SERVER_ASSIGNORS
from streaming.evaluation.assignment.leader import (
    AIOKAFKA,
    BROKER,
    FAUST,
    FRANZ_GO,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    OLD_JAVA,
    OLD_SARAMA,
    SARAMA,
    Leader,
)

_EAGER = ("range", "roundrobin", "sticky")
_CLASSIC = (*_EAGER, "cooperative-sticky")
_BY_MEMBER = frozenset({"range", "roundrobin"})
_WITHOUT_CUSTOM = frozenset({BROKER, LIBRDKAFKA})


def _strategies(library: str, *names: str) -> tuple[PartitionAssignor, ...]:
    own = AS_LEADER.get(library, {})
    return tuple(own.get(name, BUILT_IN[name]) for name in names)


LIBRARY_STRATEGIES: Mapping[str, tuple[PartitionAssignor, ...]] = MappingProxyType(
    {
        BROKER: _strategies(BROKER, *SERVER_ASSIGNORS.values()),
        JAVA: tuple(AS_JAVA_LEADER[name] for name in _CLASSIC),
        OLD_JAVA: _strategies(OLD_JAVA, *_EAGER),
        LIBRDKAFKA: _strategies(LIBRDKAFKA, "range", "roundrobin"),
        KAFKA_PYTHON: _strategies(KAFKA_PYTHON, *_CLASSIC),
        AIOKAFKA: _strategies(AIOKAFKA, *_EAGER),
        SARAMA: _strategies(SARAMA, "range", "sticky", "cooperative-sticky"),
        OLD_SARAMA: _strategies(OLD_SARAMA, "sticky"),
        FRANZ_GO: _strategies(FRANZ_GO, *_CLASSIC),
        KAFKA_GO: (),
        KAFKAJS: (),
        FAUST: (),
    }
)
"""The strategies of each library (rules 1 to 3). Only new versions of kafka-python and sarama have the last one."""


def usable_strategies(leader: Leader, spec: GroupSpec) -> tuple[PartitionAssignor, ...]:
    """Return the strategies that a group can use, as its leader computes them.

    >>> [one.name for one in usable_strategies(Leader(LIBRDKAFKA, (), (LIBRDKAFKA,)), GroupSpec((), {}))]
    ['range', 'roundrobin']
    """
    if not leader.candidates:
        return ()
    first, *others = [_strategies_for(spec, library) for library in leader.candidates]
    return tuple(one for name, one in first.items() if all(_is_alike(one, other.get(name), spec) for other in others))


def can_be_custom(leader: Leader) -> bool:
    """Return True if the members can have a strategy of their own. librdkafka has no interface for strategies."""
    return _WITHOUT_CUSTOM.isdisjoint(leader.candidates)


def _strategies_for(spec: GroupSpec, library: str) -> dict[str, PartitionAssignor]:
    strategies = {one.name: one for one in LIBRARY_STRATEGIES[library]}
    is_unknown = {
        KAFKA_PYTHON: lambda: not _is_simple(spec),
        LIBRDKAFKA: lambda: any(map(member_rack, spec.members)) or not has_one_order_in_librdkafka(spec),
    }
    if library in is_unknown and is_unknown[library]():
        return {name: one for name, one in strategies.items() if name not in _BY_MEMBER}
    return strategies


def _is_simple(spec: GroupSpec) -> bool:
    """Return True if all members are dynamic and have equal subscriptions (rule 4)."""
    is_dynamic = all(member.instance_id is None for member in spec.members)
    return is_dynamic and len({frozenset(member.topics) for member in spec.members}) <= 1


def _is_alike(one: PartitionAssignor, other: PartitionAssignor | None, spec: GroupSpec) -> bool:
    return other is one or (other is not None and one.assign(spec).members == other.assign(spec).members)
