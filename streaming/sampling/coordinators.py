"""Requests that each group's coordinator has to answer: many groups a request, and once more where one has moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from kafka.errors import IncompatibleBrokerVersion, KafkaError, NoError, NotCoordinatorError, for_code
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from streaming.group.listing import Unanswered
from streaming.sampling.connection import Connection, Message

Answer = TypeVar("Answer")

GROUPS_PER_REQUEST = 500
"""Groups asked for at once: an answer stays some megabytes, and a broker is not held up by one request."""


def error_word(error: type[KafkaError] | KafkaError) -> str:
    """Kafka's name of an error in lower case; of the client's own errors the name of their class.

    >>> error_word(for_code(30)), error_word(KafkaError())
    ('group_authorization_failed', 'KafkaError')
    """
    error_class = error if isinstance(error, type) else type(error)
    return str(getattr(error_class, "message", "")).lower() or error_class.__name__


def refusal(error_code: int) -> Unanswered | None:
    """What an error code of an answer says, None where it says that all is well."""
    return None if error_code == NoError.errno else Unanswered(error_word(for_code(error_code)))


UNSUPPORTED_VERSION = Unanswered(error_word(IncompatibleBrokerVersion))
_MOVED = Unanswered(error_word(NotCoordinatorError))


@dataclass(frozen=True, slots=True)
class GroupApi(Generic[Answer]):
    """A request about several groups, and what a response to it says of each, given the ids asked for."""

    request: Callable[[Sequence[str]], Message]
    answers: Callable[[Sequence[str], Message], Mapping[str, Answer]]
    groups_per_request: int = GROUPS_PER_REQUEST


class Coordinators:
    """Knows who coordinates which group, as far as it was told, and asks brokers for the rest."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: Mapping[str, int] = {}

    def learn(self, coordinators: Mapping[str, int]) -> None:
        """Take over what a listing told, in place of all that was known: groups that are gone take no memory."""
        self._known = coordinators

    def ask(self, ids: Sequence[str], api: GroupApi[Answer]) -> dict[str, Answer | Unanswered]:
        """Ask each group's coordinator. Every id has an answer."""
        answers = self._ask({group_id: self._known[group_id] for group_id in ids if group_id in self._known}, api)
        moved = [group_id for group_id in ids if answers.get(group_id, _MOVED) == _MOVED]
        found = self._find(moved)
        anew = self._ask({group_id: where for group_id, where in found.items() if isinstance(where, int)}, api)
        nowhere = {group_id: where for group_id, where in found.items() if isinstance(where, Unanswered)}
        return {**answers, **anew, **nowhere}

    def _ask(self, coordinators: Mapping[str, int], api: GroupApi[Answer]) -> dict[str, Answer | Unanswered]:
        by_broker: dict[int, list[str]] = defaultdict(list)
        for group_id, broker_id in coordinators.items():
            by_broker[broker_id].append(group_id)
        batches = [
            (broker_id, chunk) for broker_id, ids in by_broker.items() for chunk in _chunks(ids, api.groups_per_request)
        ]
        responses = self._connection.ask_each([(broker_id, api.request(chunk)) for broker_id, chunk in batches])
        answers: dict[str, Answer | Unanswered] = {}
        for (_, chunk), response in zip(batches, responses, strict=True):
            answers.update(_read(chunk, response, api.answers))
        return answers

    def _find(self, ids: Sequence[str]) -> Mapping[str, int | Unanswered]:
        chunks = list(_chunks(ids, GROUPS_PER_REQUEST))
        responses = self._connection.ask_each([(None, _find_coordinators(chunk)) for chunk in chunks])
        if any(isinstance(response, IncompatibleBrokerVersion) for response in responses):
            chunks = [[group_id] for group_id in ids]  # brokers before 3.0 are asked for one at a time
            responses = self._connection.ask_each([(None, _find_coordinator(group_id)) for group_id in ids])
        found: dict[str, int | Unanswered] = {}
        for chunk, response in zip(chunks, responses, strict=True):
            found.update(_read(chunk, response, _coordinators))
        return found


def _read(
    ids: Sequence[str], response: Message, answers: Callable[[Sequence[str], Message], Mapping[str, Answer]]
) -> Mapping[str, Answer | Unanswered]:
    """What a response says of each group; a group it passes over has no answer, as all have if there is none."""
    unanswered: dict[str, Answer | Unanswered] = dict.fromkeys(ids, Unanswered("no_answer"))
    if isinstance(response, KafkaError):
        return dict.fromkeys(ids, Unanswered(error_word(response)))
    return {**unanswered, **answers(ids, response)}


def _coordinators(ids: Sequence[str], response: Message) -> Mapping[str, int | Unanswered]:
    """Before version 4 a response names no group: it is about the one that was asked for."""
    if response.API_VERSION < 4:
        return {ids[0]: refusal(response.error_code) or response.node_id}
    return {found.key: refusal(found.error_code) or found.node_id for found in response.coordinators}


def _find_coordinators(ids: Sequence[str]) -> Message:
    return FindCoordinatorRequest(key_type=CoordinatorType.GROUP.value, coordinator_keys=list(ids), min_version=4)


def _find_coordinator(group_id: str) -> Message:
    return FindCoordinatorRequest(key=group_id, key_type=CoordinatorType.GROUP.value, max_version=3)


def _chunks(ids: Sequence[str], size: int) -> Iterator[list[str]]:
    rest: Iterable[str] = iter(ids)
    while chunk := list(islice(rest, size)):
        yield chunk
