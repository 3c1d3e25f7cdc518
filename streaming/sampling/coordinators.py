"""Send requests to the coordinators of groups, with many groups per request.

If a group has a new coordinator, the request is sent again to the new coordinator.
"""

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
"""Maximum number of groups per request. It limits a response to a few megabytes, and keeps requests short."""


def error_name(error: type[KafkaError] | KafkaError) -> str:
    """Return Kafka's name of an error in lower case, or the name of the class of a client's own error.

    >>> error_name(for_code(30)), error_name(KafkaError())
    ('group_authorization_failed', 'KafkaError')
    """
    error_class = error if isinstance(error, type) else type(error)
    return str(getattr(error_class, "message", "")).lower() or error_class.__name__


def read_error_code(error_code: int) -> Unanswered | None:
    """Return the error that the code means, or None if the code means "no error"."""
    return None if error_code == NoError.errno else Unanswered(error_name(for_code(error_code)))


_MOVED = Unanswered(error_name(NotCoordinatorError))


@dataclass(frozen=True, slots=True)
class GroupApi(Generic[Answer]):
    """`request` creates a request from group ids. `answers` reads the result of each group from the response."""

    request: Callable[[Sequence[str]], Message]
    answers: Callable[[Sequence[str], Message], Mapping[str, Answer]]
    groups_per_request: int = GROUPS_PER_REQUEST


class Coordinators:
    """The known coordinators of groups. If the coordinator of a group is unknown, `ask` finds it first."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: Mapping[str, int] = {}

    def use_coordinators(self, coordinators: Mapping[str, int]) -> None:
        """Replace the known coordinators with the coordinators in a listing. Deleted groups are removed, too."""
        self._known = coordinators

    def ask(self, ids: Sequence[str], api: GroupApi[Answer]) -> dict[str, Answer | Unanswered]:
        """Send requests to the coordinators of the groups. Return an answer or Unanswered for every group id."""
        answers = self._ask({group_id: self._known[group_id] for group_id in ids if group_id in self._known}, api)
        moved = [group_id for group_id in ids if answers.get(group_id, _MOVED) == _MOVED]
        coordinators = self._find_coordinators(moved)
        new_answers = self._ask({group_id: one for group_id, one in coordinators.items() if isinstance(one, int)}, api)
        unknown = {group_id: one for group_id, one in coordinators.items() if isinstance(one, Unanswered)}
        return {**answers, **new_answers, **unknown}

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
            answers.update(_answers_by_group(chunk, response, api.answers))
        return answers

    def _find_coordinators(self, ids: Sequence[str]) -> Mapping[str, int | Unanswered]:
        chunks = list(_chunks(ids, GROUPS_PER_REQUEST))
        kind = CoordinatorType.GROUP.value
        responses = self._connection.ask_each(
            [(None, FindCoordinatorRequest(key_type=kind, coordinator_keys=chunk, min_version=4)) for chunk in chunks]
        )
        if any(isinstance(response, IncompatibleBrokerVersion) for response in responses):
            chunks = [[group_id] for group_id in ids]  # brokers before 3.0 accept one group per request
            responses = self._connection.ask_each(
                [(None, FindCoordinatorRequest(key=group_id, key_type=kind, max_version=3)) for group_id in ids]
            )
        coordinators: dict[str, int | Unanswered] = {}
        for chunk, response in zip(chunks, responses, strict=True):
            coordinators.update(_answers_by_group(chunk, response, _read_coordinators))
        return coordinators


def _answers_by_group(
    ids: Sequence[str], response: Message, answers: Callable[[Sequence[str], Message], Mapping[str, Answer]]
) -> Mapping[str, Answer | Unanswered]:
    if isinstance(response, KafkaError):
        return dict.fromkeys(ids, Unanswered(error_name(response)))
    return {**dict.fromkeys(ids, Unanswered("no_answer")), **answers(ids, response)}


def _read_coordinators(ids: Sequence[str], response: Message) -> Mapping[str, int | Unanswered]:
    """Before protocol version 4, a response is for one group only and does not contain the group id."""
    if response.API_VERSION < 4:
        return {ids[0]: read_error_code(response.error_code) or response.node_id}
    return {one.key: read_error_code(one.error_code) or one.node_id for one in response.coordinators}


def _chunks(ids: Sequence[str], size: int) -> Iterator[list[str]]:
    rest: Iterable[str] = iter(ids)
    while chunk := list(islice(rest, size)):
        yield chunk
