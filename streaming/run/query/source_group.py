"""Choose the group id of Spark's Kafka source, so that a coordinator answers its requests.

The source joins no group, but before it reads it requests the committed offsets of its group. It repeats this request
until a coordinator answers, and the request cannot be interrupted. The group id determines the coordinator, and Spark
uses a random id. If a coordinator cannot load its partition of `__consumer_offsets`, for example because of a damaged
record, it never answers. Then the query waited forever without a log line. So the monitor chooses an id whose
coordinator has answered it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from uuid import uuid4

from streaming.group.listing import Unanswered
from streaming.sampling.groups import Groups

_CANDIDATES = 20
_TRIES = 30
"""Number of attempts, with pauses. A coordinator that has just started answers after it has loaded its groups."""
_PAUSE_SECONDS = 1.0


class NoCoordinatorError(Exception):
    """No group coordinator answers, so Spark's Kafka source cannot start."""


def candidate_ids() -> tuple[str, ...]:
    """Return ids that no other query uses. Their hashes spread over the partitions of `__consumer_offsets`.

    Spark caches its consumers by group id and topic partition, but not by cluster. Queries of two clusters with the
    same group id shared consumers, and failed.
    """
    return tuple(f"kafka-rebalance-monitor-{uuid4()}" for _ in range(_CANDIDATES))


def source_group(groups: Groups, stop: threading.Event, candidates: Collection[str]) -> str:
    """Return an id whose coordinator answers. Raises NoCoordinatorError after about 30 s, or when `stop` is set."""
    reason = "stopped"
    for _ in range(_TRIES):
        for group_id, answer in groups.group_offsets(candidates).items():
            if not isinstance(answer, Unanswered):
                return group_id
            reason = answer.reason
        if stop.wait(_PAUSE_SECONDS):
            break
    raise NoCoordinatorError(f"no group coordinator answers: {reason}")
