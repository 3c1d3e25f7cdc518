"""Which client library made the assignment, found from the shape of the bytes: users name their clients as they like.

Only the leader's library matters; it wrote every member's assignment. Read in the libraries' sources, and seen in
records of real clients (the table of `test_leader.py`). User data is null, empty, or filled:

| leader | assignments | its own subscription |
|---|---|---|
| Java 2.4 and later | the version of its subscription, null | version 1 to 3; null, sticky strategies: filled |
| Java before 2.4 | version 0, empty | version 0; empty, with `sticky` filled |
| librdkafka | version 0, each member's own user data | version 3, 1 (before 2.2) or 0 (before 1.6); empty or filled |
| kafka-python | version 0, empty | version 0; empty, with `sticky` filled (since 3.0 in a form of its own) |
| kafka-python, `cooperative-sticky` | version 1, empty | version 1; empty |
| aiokafka | version 0, empty | version 0; empty, with `sticky` filled |
| KafkaJS, `RoundRobinAssigner` | version 0, empty | version 0; empty |
| sarama | version 0, null, with `sticky` filled | version 2 or 1 (before 1.60: 0); null or filled |
| sarama, `cooperative-sticky` | version 0, null | version 2 or 1; 4 bytes |
| franz-go | version 0, null | version 3 (before 2023: 0 or 1); null, sticky strategies: filled |
| kafka-go | version 1, null | version 1, ends before `ownedPartitions`; null or filled |
| Faust, `faust` | version 4, filled | version 4, ends before `ownedPartitions`; filled |

Rules:

1. The *candidates* are all libraries that write such bytes for the group's strategy. Members that the leader left out
   have no bytes and prove nothing.
2. The library is recognised if there is one candidate, or one whose default client id the leader has.
3. Version 0 with null user data on both sides is also what many small libraries write. There the default client id is
   required.
4. Where the leader is unknown (DescribeGroups does not name it), any member may be it: there are candidates only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from assignors.fairness.balance_rules import BALANCE_RULES
from streaming.protocol.classic import ClassicMember, GroupMetadata, Subscription
from streaming.protocol.consumer_protocol import kafka_python_sticky_user_data

JAVA = "java"
LIBRDKAFKA = "librdkafka"
KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"
KAFKAJS = "kafkajs"
SARAMA = "sarama"
FRANZ_GO = "franz-go"
KAFKA_GO = "kafka-go"
FAUST = "faust"
OLD_JAVA = "java-2.3"
"""Java before 2.4. Never recognised: other libraries write the same bytes, and its default client id proves little."""
BROKER = "broker"
"""The group coordinator itself (KIP-848)."""
UNKNOWN_LEADER = "unknown"

NULL, EMPTY, FILLED, GENERATION, PREFIXED = "null", "empty", "filled", "4 bytes", "prefixed"
"""Kinds of user data. Four bytes are a generation (`CooperativeStickyAssignor`) or an empty claim, `prefixed` is the
claim of a `sticky` member in kafka-python's own form."""

_DEFAULT_CLIENT_IDS: Mapping[str, str] = MappingProxyType(
    {
        LIBRDKAFKA: "rdkafka-",
        KAFKA_PYTHON: "kafka-python-",
        AIOKAFKA: "aiokafka-",
        SARAMA: "sarama-",
        FRANZ_GO: "kgo-",
    }
)
"""How a client id and a dash begin where no client id was set."""

KAFKAJS_PROTOCOL = "RoundRobinAssigner"
"""The one strategy of KafkaJS, by a name of its own."""
KAFKA_GO_RACKS = "rack-affinity"
"""A strategy that only kafka-go has."""

_STICKY = frozenset({"sticky", "cooperative-sticky"})
_GENERATION_BYTES = 4


class Leader(msgspec.Struct, frozen=True):
    """The library that assigned, and the evidence for it, in words for a person.

    `candidates` are all libraries that may have assigned, the recognised one alone where there is one.
    """

    implementation: str
    evidence: tuple[str, ...]
    candidates: tuple[str, ...] = ()


class _Assignments(NamedTuple):
    """What the leader wrote for all members: their version, and the kinds of their user data.

    `echoes` says that every assignment has the user data of its member's subscription.
    """

    version: int
    kinds: frozenset[str]
    echoes: bool


class _Said(NamedTuple):
    """A member's own subscription."""

    version: int
    user_data: str
    ends_before_owned: bool


class _Written(NamedTuple):
    """What a group shows of its leader."""

    protocol: str
    assignment_version: int
    assignments: frozenset[str]
    echoes: bool
    version: int
    user_data: str
    ends_before_owned: bool


def leader_of(metadata: GroupMetadata) -> Leader:
    """Find who assigned. Unknown where nobody was given bytes, or bytes of several versions."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    given, protocol = _assignments(metadata.members), metadata.protocol
    if given is None or protocol is None:
        return Leader(UNKNOWN_LEADER, ())
    if leader is None:
        shapes = {_said(member.subscription) for member in metadata.members if member.subscription}
        names = {name for said in shapes for name in _candidates(_written(protocol, given, said))}
        return Leader(UNKNOWN_LEADER, (), tuple(sorted(names)))
    if leader.subscription is None:
        return Leader(UNKNOWN_LEADER, ())
    found = _written(protocol, given, _said(leader.subscription))
    candidates = _candidates(found)
    named = tuple(name for name in candidates if _has_default_client_id(leader, name))
    recognised = named if len(named) == 1 else candidates
    evidence = (
        _shape("assignments", found.assignment_version, " or ".join(sorted(found.assignments))),
        _shape("leader's subscription", found.version, found.user_data, ends=found.ends_before_owned),
        *((f"leader's client id: the default of {named[0]}",) if len(named) == 1 else ()),
    )
    if len(recognised) != 1 or (_is_anybodys(found) and not named):
        return Leader(UNKNOWN_LEADER, evidence, candidates if not _is_anybodys(found) else ())
    return Leader(recognised[0], evidence, recognised)


def _has_default_client_id(leader: ClassicMember, library: str) -> bool:
    """A static member's id begins with its instance id, a dynamic one's with its client id."""
    default = _DEFAULT_CLIENT_IDS.get(library)
    return default is not None and (leader.member_id.startswith(default) or f"{leader.client_id}-".startswith(default))


def promised_balance(leader: Leader, strategy: str) -> str | None:
    """The strategy whose balance rule (`assignors.fairness.balance_rules`) the leader keeps; None if unknown.

    kafka-go deals roundrobin anew with each topic: its members differ by one partition of each topic, not of all.

    >>> promised_balance(Leader(KAFKA_GO, (), (KAFKA_GO,)), "roundrobin")
    'range'
    >>> promised_balance(Leader(UNKNOWN_LEADER, (), (AIOKAFKA, KAFKA_PYTHON)), "roundrobin")
    'roundrobin'
    >>> promised_balance(Leader(UNKNOWN_LEADER, ()), "roundrobin") is None
    True
    """
    if strategy not in BALANCE_RULES:
        return None
    promises = {"range" if (name, strategy) == (KAFKA_GO, "roundrobin") else strategy for name in leader.candidates}
    return promises.pop() if len(promises) == 1 else None


def _shape(what: str, version: int, user_data: str, *, ends: bool = False) -> str:
    return f"{what}: version {version}, user data {user_data}{', ends before ownedPartitions' if ends else ''}"


def _kind(user_data: bytes | None) -> str:
    if user_data is None:
        return NULL
    if not user_data:
        return EMPTY
    if len(user_data) == _GENERATION_BYTES:
        return GENERATION
    claim = kafka_python_sticky_user_data(user_data)
    return PREFIXED if claim is not None and claim[0] else FILLED


def _assignments(members: Iterable[ClassicMember]) -> _Assignments | None:
    """None where nobody was given bytes, or bytes of several versions: one library writes all of them alike."""
    given = [(member.subscription, member.assignment) for member in members if member.assignment]
    pairs = [(joined, assigned) for joined, assigned in given if assigned.version is not None]
    versions = {assigned.version for _, assigned in pairs}
    if len(versions) != 1:
        return None
    echoes = all(joined is not None and joined.user_data == assigned.user_data for joined, assigned in pairs)
    return _Assignments(versions.pop() or 0, frozenset(_kind(assigned.user_data) for _, assigned in pairs), echoes)


def _said(subscription: Subscription) -> _Said:
    return _Said(subscription.version, _kind(subscription.user_data), subscription.ends_before_owned)


def _written(protocol: str, given: _Assignments, said: _Said) -> _Written:
    return _Written(protocol, given.version, given.kinds, given.echoes, *said)


def _candidates(written: _Written) -> tuple[str, ...]:
    return tuple(name for name, writes in _LIBRARIES if writes(written))


def _is_anybodys(written: _Written) -> bool:
    """Rule 3."""
    return (written.assignment_version, written.version) == (0, 0) and {*written.assignments, written.user_data} == {
        NULL
    }


def _is_java(written: _Written) -> bool:
    if written.ends_before_owned or written.assignments != {NULL}:
        return False
    is_claim = written.user_data in {FILLED, GENERATION} and written.protocol not in {"range", "roundrobin"}
    return written.assignment_version == written.version >= 1 and (written.user_data == NULL or is_claim)


def _is_librdkafka(written: _Written) -> bool:
    if written.ends_before_owned or written.protocol not in {"range", "roundrobin", "cooperative-sticky"}:
        return False
    is_own = written.user_data in {EMPTY, FILLED} and written.echoes
    return is_own and written.assignment_version == 0 and written.version in {0, 1, 3}


def _is_version_0(written: _Written, *claims: str) -> bool:
    """Both sides of version 0, assignments with empty user data; a sticky member may claim what it had."""
    kinds = {EMPTY, *claims} if written.protocol == "sticky" else {EMPTY}
    is_version_0 = (written.assignment_version, written.version) == (0, 0)
    return is_version_0 and written.assignments == {EMPTY} and written.user_data in kinds


def _is_aiokafka_or_old_java(written: _Written) -> bool:
    return _is_version_0(written, FILLED) and written.protocol not in {KAFKAJS_PROTOCOL, "cooperative-sticky"}


def _is_kafka_python(written: _Written) -> bool:
    if written.protocol == "cooperative-sticky":
        is_version_1 = (written.assignment_version, written.version) == (1, 1)
        return is_version_1 and not written.ends_before_owned and {*written.assignments, written.user_data} == {EMPTY}
    return written.protocol != KAFKAJS_PROTOCOL and _is_version_0(written, FILLED, PREFIXED)


def _is_kafkajs(written: _Written) -> bool:
    return written.protocol == KAFKAJS_PROTOCOL and _is_version_0(written)


def _is_sarama(written: _Written) -> bool:
    if written.ends_before_owned or written.assignment_version != 0 or written.version > 2:
        return False
    if written.protocol == "sticky":
        return FILLED in written.assignments <= {NULL, FILLED} and written.user_data in {NULL, FILLED}
    if written.protocol == "cooperative-sticky":
        return written.assignments == {NULL} and written.user_data == GENERATION
    return written.assignments == {NULL} and written.user_data in {NULL, FILLED}


def _is_franz_go(written: _Written) -> bool:
    """A claim of nothing is an empty array: four bytes."""
    kinds = {FILLED, GENERATION} if written.protocol in _STICKY else {NULL}
    is_own = written.assignments == {NULL} and written.user_data in kinds and not written.ends_before_owned
    before_2023 = 1 if written.protocol == "cooperative-sticky" else 0
    is_version = written.version == 3 or (written.version == before_2023 and written.user_data != GENERATION)
    return is_own and written.assignment_version == 0 and is_version


def _is_kafka_go(written: _Written) -> bool:
    is_version_1 = (written.assignment_version, written.version) == (1, 1)
    return is_version_1 and written.ends_before_owned and written.assignments == {NULL}


def _is_faust(written: _Written) -> bool:
    is_own = written.protocol == "faust" and written.ends_before_owned and written.assignments == {FILLED}
    return is_own and written.assignment_version == written.version


_LIBRARIES: tuple[tuple[str, Callable[[_Written], bool]], ...] = (
    (AIOKAFKA, _is_aiokafka_or_old_java),
    (FAUST, _is_faust),
    (FRANZ_GO, _is_franz_go),
    (JAVA, _is_java),
    (OLD_JAVA, _is_aiokafka_or_old_java),
    (KAFKA_GO, _is_kafka_go),
    (KAFKA_PYTHON, _is_kafka_python),
    (KAFKAJS, _is_kafkajs),
    (LIBRDKAFKA, _is_librdkafka),
    (SARAMA, _is_sarama),
)
