"""Recognise the client library that computed the assignment.

The monitor recognises the library by the format of the bytes that the leader wrote: versions and user data. Only the
leader's library matters, because the leader computes and writes all assignments. Client ids alone are not sufficient,
because users can configure any client id. The table below comes from the sources of the libraries and from records of
real clients (`test_leader.py`). The last two columns show a version and the user data (null, empty or filled):

| leader | assignments | the leader's subscription |
|---|---|---|
| Java 2.4 and later | the version of its subscription, null | version 1 to 3; null (sticky strategies: filled) |
| Java before 2.4 | version 0, empty | version 0; empty (`sticky`: filled) |
| librdkafka | version 0, each member's own user data | version 3, 1 (before 2.2) or 0 (before 1.6); empty or filled |
| kafka-python | version 0, empty | version 0; empty (`sticky`: filled, since 3.0 in its own format) |
| kafka-python, `cooperative-sticky` | version 1, empty | version 1; empty |
| aiokafka | version 0, empty | version 0; empty (`sticky`: filled) |
| KafkaJS, `RoundRobinAssigner` | version 0, empty | version 0; empty |
| sarama | version 0, null (`sticky`: filled) | version 2 or 1 (before 1.60: 0); null or filled |
| sarama, `cooperative-sticky` | version 0, null | version 2 or 1; 4 bytes |
| franz-go | version 0, null | version 3 (before 2023: 0 or 1); null (sticky strategies: filled) |
| kafka-go | version 1, null | version 1, ends before `ownedPartitions`; null or filled |
| Faust, `faust` | version 4, filled | version 4, ends before `ownedPartitions`; filled |

Rules:

1. The *candidates* are all libraries that write bytes in the leader's format for the group's strategy. Members without
   an assignment are ignored.
2. If only one library is a candidate, this library is the leader's library. If there are several candidates, the
   leader's client id is compared with the default client ids of the candidates. If exactly one candidate matches, this
   candidate is the leader's library. Otherwise, the library is unknown, and all candidates remain.
3. Many small libraries write version 0 and null user data into the assignments and into the subscription. A leader with
   this format is identified only by its default client id.
4. DescribeGroups does not name the leader. If the leader is unknown, any member can be the leader. The library of an
   unknown leader is unknown, and the candidates of all members are combined.
5. No record shows the version of the library. If the leader's subscription has version 0, a sarama leader is possibly
   sarama up to 1.27.2, which computes `roundrobin` separately for each topic. So both versions are candidates.
6. Assignments that end before the user data identify no library. pykafka and old versions of @platformatic/kafka write
   them.

No record names the library of the other members (`member_library`):

7. The leader uses the library that computed the assignment, if the monitor recognised this library.
8. If rule 7 does not apply, and the member has the default client id of a library, the member uses this library. For
   example, the default client id of Java's consumer is `consumer-<group id>-<number>`. Users can configure any client
   id, so rule 8 is weaker evidence than rule 7. Otherwise, the library is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from assignors.fairness.balance_rules import BALANCE_RULES
from streaming.group.members import GroupMember
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
"""Java before 2.4 is never recognised: other libraries write the same bytes, and the client id shows no version."""
OLD_SARAMA = "sarama-1.27"
"""sarama up to 1.27.2. It is never recognised, and is a candidate only together with `sarama` (rule 5)."""
BROKER = "broker"
"""The group coordinator computed the assignment (KIP-848)."""
UNKNOWN_LEADER = "unknown"

NULL, EMPTY, FILLED, GENERATION, PREFIXED = "null", "empty", "filled", "4 bytes", "prefixed"
"""Kinds of user data.

User data of four bytes is either a generation (`CooperativeStickyAssignor`) or an empty claim. `prefixed` is the format
that only kafka-python uses for the claim of a `sticky` member.
"""

DEFAULT_CLIENT_IDS: Mapping[str, str] = MappingProxyType(
    {LIBRDKAFKA: "rdkafka-", KAFKA_PYTHON: "kafka-python-", AIOKAFKA: "aiokafka-", SARAMA: "sarama-", FRANZ_GO: "kgo-"}
)
"""Prefix of the default client id of each library. The client id, followed by a dash, must begin with this prefix."""

KAFKAJS_PROTOCOL = "RoundRobinAssigner"
"""Name of the only strategy of KafkaJS."""
KAFKA_GO_RACKS = "rack-affinity"
"""Name of a strategy that only kafka-go has."""

"""The libraries whose `roundrobin` starts again at the first member for each topic."""

_STICKY = frozenset({"sticky", "cooperative-sticky"})
_GENERATION_BYTES = 4


class Leader(msgspec.Struct, frozen=True):
    """The library that computed the assignment, and how it was recognised. `candidates` are all possible libraries."""

    implementation: str
    evidence: tuple[str, ...]
    candidates: tuple[str, ...] = ()


UNRECOGNISED = Leader(UNKNOWN_LEADER, ())
"""The leader of a group about which no bytes give evidence."""


class _RecordForm(NamedTuple):
    """The format of all assignments that the leader wrote, and of the leader's own subscription.

    `echoes_user_data` is True if the assignment of each member contains the user data of the member's subscription.
    """

    protocol: str
    assignment_version: int
    assignments: frozenset[str]
    echoes_user_data: bool
    version: int
    user_data: str
    ends_before_owned: bool


def leader_of(metadata: GroupMetadata) -> Leader:
    """Find the library that computed the assignment."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    assignments, protocol = _assignment_form(metadata.members), metadata.protocol
    if assignments is None or protocol is None:
        return UNRECOGNISED
    if leader is None:
        subscriptions = [member.subscription for member in metadata.members if member.subscription]
        forms = {_record_form(protocol, assignments, subscription) for subscription in subscriptions}
        if any(map(_fits_many_libraries, forms)):
            return UNRECOGNISED
        names = {name for form in forms for name in _with_versions(form, _candidates(form))}
        return Leader(UNKNOWN_LEADER, (), tuple(sorted(names)))
    if leader.subscription is None:
        return UNRECOGNISED
    form = _record_form(protocol, assignments, leader.subscription)
    candidates = _candidates(form)
    with_default_id = tuple(name for name in candidates if _has_default_client_id(leader, name))
    recognised = with_default_id if len(with_default_id) == 1 else candidates
    evidence = (
        _form_text("assignments", form.assignment_version, " or ".join(sorted(form.assignments))),
        _form_text("leader's subscription", form.version, form.user_data, ends=form.ends_before_owned),
        *((f"leader's client id: the default of {with_default_id[0]}",) if len(with_default_id) == 1 else ()),
    )
    if len(recognised) != 1 or (_fits_many_libraries(form) and not with_default_id):
        possible = () if _fits_many_libraries(form) else _with_versions(form, candidates)
        return Leader(UNKNOWN_LEADER, evidence, possible)
    return Leader(recognised[0], evidence, _with_versions(form, recognised))


def _has_default_client_id(leader: ClassicMember, library: str) -> bool:
    """Return True if the leader has the default client id of `library`.

    The member id of a dynamic member begins with its client id. The member id of a static member begins with its
    instance id.
    """
    default = DEFAULT_CLIENT_IDS.get(library)
    return default is not None and (leader.member_id.startswith(default) or f"{leader.client_id}-".startswith(default))


def promised_balance(leader: Leader, strategy: str) -> str | None:
    """Return the strategy whose balance rule the leader follows, or None if unknown.

    The balance rules are in `assignors.fairness.balance_rules`. For each topic, the `roundrobin` of kafka-go starts
    again at the first member. So the first members can get an extra partition of every topic, as with `range`. Old
    sarama starts again for each topic, too. But newer versions of sarama order all partitions by their names, so a
    topic can be uneven. If the version is unknown, neither is certain.

    >>> promised_balance(Leader(KAFKA_GO, (), (KAFKA_GO,)), "roundrobin")
    'range'
    >>> promised_balance(Leader(UNKNOWN_LEADER, (), (AIOKAFKA, KAFKA_PYTHON)), "roundrobin")
    'roundrobin'
    >>> promised_balance(Leader(UNKNOWN_LEADER, ()), "roundrobin") is None
    True
    """
    if strategy not in BALANCE_RULES or not leader.candidates:
        return None
    if strategy != "roundrobin":
        return strategy
    if OLD_SARAMA in leader.candidates:
        return None
    return "range" if KAFKA_GO in leader.candidates else strategy


def _form_text(what: str, version: int, user_data: str, *, ends: bool = False) -> str:
    return f"{what}: version {version}, user data {user_data}{', ends before ownedPartitions' if ends else ''}"


def _user_data_kind(user_data: bytes | None) -> str:
    if user_data is None:
        return NULL
    if not user_data:
        return EMPTY
    if len(user_data) == _GENERATION_BYTES:
        return GENERATION
    claim = kafka_python_sticky_user_data(user_data)
    return PREFIXED if claim is not None and claim[0] else FILLED


def _assignment_form(members: Iterable[ClassicMember]) -> tuple[int, frozenset[str], bool] | None:
    """Return the three fields of `_RecordForm` that describe the assignments.

    Return None if no member has an assignment. Also return None if the versions of the assignments differ, because a
    leader writes the same version into all assignments.
    """
    known = [(member.subscription, member.assignment) for member in members if member.assignment]
    pairs = [(joined, assigned) for joined, assigned in known if assigned.version is not None]
    versions = {assigned.version for _, assigned in pairs}
    if len(versions) != 1:
        return None
    echoes_user_data = all(joined is not None and joined.user_data == assigned.user_data for joined, assigned in pairs)
    kinds = frozenset(_user_data_kind(assigned.user_data) for _, assigned in pairs)
    return versions.pop() or 0, kinds, echoes_user_data


def _record_form(
    protocol: str, assignments: tuple[int, frozenset[str], bool], subscription: Subscription
) -> _RecordForm:
    kind = _user_data_kind(subscription.user_data)
    return _RecordForm(protocol, *assignments, subscription.version, kind, subscription.ends_before_owned)


def _candidates(written: _RecordForm) -> tuple[str, ...]:
    return tuple(name for name, writes in _LIBRARIES if writes(written))


def _with_versions(written: _RecordForm, libraries: Sequence[str]) -> tuple[str, ...]:
    """Add old sarama to the candidates if the leader is possibly old sarama (rule 5)."""
    is_old = SARAMA in libraries and written.version == 0
    return (*libraries, OLD_SARAMA) if is_old else tuple(libraries)


def _fits_many_libraries(written: _RecordForm) -> bool:
    """Return True if many libraries write the leader's format (rule 3)."""
    is_version_0 = (written.assignment_version, written.version) == (0, 0)
    return is_version_0 and {*written.assignments, written.user_data} == {NULL}


def _is_java(written: _RecordForm) -> bool:
    if written.ends_before_owned or written.assignments != {NULL}:
        return False
    is_claim = written.user_data in {FILLED, GENERATION} and written.protocol not in {"range", "roundrobin"}
    return written.assignment_version == written.version >= 1 and (written.user_data == NULL or is_claim)


def _is_librdkafka(written: _RecordForm) -> bool:
    if written.ends_before_owned or written.protocol not in {"range", "roundrobin", "cooperative-sticky"}:
        return False
    is_own = written.user_data in {EMPTY, FILLED} and written.echoes_user_data
    return is_own and written.assignment_version == 0 and written.version in {0, 1, 3}


def _is_version_0(written: _RecordForm, *claims: str) -> bool:
    """Return True for version 0 and empty user data.

    If the strategy is `sticky`, the user data of the subscription can also have one of the kinds in `claims`.
    """
    kinds = {EMPTY, *claims} if written.protocol == "sticky" else {EMPTY}
    is_version_0 = (written.assignment_version, written.version) == (0, 0)
    return is_version_0 and written.assignments == {EMPTY} and written.user_data in kinds


def _is_aiokafka_or_old_java(written: _RecordForm) -> bool:
    return _is_version_0(written, FILLED) and written.protocol not in {KAFKAJS_PROTOCOL, "cooperative-sticky"}


def _is_kafka_python(written: _RecordForm) -> bool:
    if written.protocol == "cooperative-sticky":
        is_version_1 = (written.assignment_version, written.version) == (1, 1)
        return is_version_1 and not written.ends_before_owned and {*written.assignments, written.user_data} == {EMPTY}
    return written.protocol != KAFKAJS_PROTOCOL and _is_version_0(written, FILLED, PREFIXED)


def _is_kafkajs(written: _RecordForm) -> bool:
    return written.protocol == KAFKAJS_PROTOCOL and _is_version_0(written)


def _is_sarama(written: _RecordForm) -> bool:
    if written.ends_before_owned or written.assignment_version != 0 or written.version > 2:
        return False
    if written.protocol == "sticky":
        return FILLED in written.assignments <= {NULL, FILLED} and written.user_data in {NULL, FILLED}
    if written.protocol == "cooperative-sticky":
        return written.assignments == {NULL} and written.user_data == GENERATION
    return written.assignments == {NULL} and written.user_data in {NULL, FILLED}


def _is_franz_go(written: _RecordForm) -> bool:
    # If a member claims no partitions, franz-go writes an empty array of four bytes as user data.
    kinds = {FILLED, GENERATION} if written.protocol in _STICKY else {NULL}
    is_own = written.assignments == {NULL} and written.user_data in kinds and not written.ends_before_owned
    before_2023 = 1 if written.protocol == "cooperative-sticky" else 0
    is_version = written.version == 3 or (written.version == before_2023 and written.user_data != GENERATION)
    return is_own and written.assignment_version == 0 and is_version


def _is_kafka_go(written: _RecordForm) -> bool:
    is_version_1 = (written.assignment_version, written.version) == (1, 1)
    return is_version_1 and written.ends_before_owned and written.assignments == {NULL}


def _is_faust(written: _RecordForm) -> bool:
    is_own = written.protocol == "faust" and written.ends_before_owned and written.assignments == {FILLED}
    return is_own and written.assignment_version == written.version


_LIBRARIES: tuple[tuple[str, Callable[[_RecordForm], bool]], ...] = (
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


ASSIGNMENT, CLIENT_ID = "assignment", "client_id"


@dataclass(frozen=True, slots=True)
class MemberLibrary:
    """The library of a member. `evidence` is `assignment` (rule 7) or `client_id` (rule 8)."""

    name: str
    evidence: str


def member_library(
    group_id: str, member: GroupMember, leader: GroupMember | None, assigned_by: str | None
) -> MemberLibrary | None:
    """Return the library of a member, or None if unknown. `assigned_by` is a result of `leader_of`, or `broker`."""
    is_leader = leader is not None and leader.member_id == member.member_id
    if is_leader and assigned_by not in {None, BROKER, UNKNOWN_LEADER}:
        return MemberLibrary(str(assigned_by), ASSIGNMENT)
    with_dash = f"{member.client_id}-"
    names = [name for name, prefix in DEFAULT_CLIENT_IDS.items() if with_dash.startswith(prefix)]
    number = member.client_id.removeprefix(f"consumer-{group_id}-")
    if number != member.client_id and number.isascii() and number.isdecimal():
        names.append(JAVA)
    return MemberLibrary(names[0], CLIENT_ID) if len(names) == 1 else None
