"""For Spark's Kafka source, choose a group id whose coordinator answers requests.

The source does not join a group. But before it reads records, it requests the committed offsets of its group id until
the coordinator answers. This cannot be interrupted. A coordinator that cannot load its partition of
`__consumer_offsets` never answers. By default, Spark uses a random group id. So the query could wait forever without a
log line.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from uuid import uuid4

from streaming.group.listing import Unanswered
from streaming.sampling.groups import Groups

_CANDIDATES = 20
_TRIES = 30
"""Number of attempts. A coordinator that has just started does not answer until it has loaded its groups."""
_PAUSE_SECONDS = 1.0


class NoCoordinatorError(Exception):
    """Error: no group coordinator answers, so Spark's Kafka source cannot start."""


def candidate_ids() -> tuple[str, ...]:
    """Return new group ids that no other query uses. Kafka maps the ids to several `__consumer_offsets` partitions.

    Spark caches consumers by group id, but not by cluster. If the queries of two clusters used the same group id, they
    would share consumers and fail.
    """
    return tuple(f"kafka-rebalance-monitor-{uuid4()}" for _ in range(_CANDIDATES))


def source_group(groups: Groups, stop: threading.Event, candidates: Collection[str]) -> str:
    """Return an id whose coordinator answers. Raises NoCoordinatorError after about 30 s, or if `stop` is set."""
    reason = "stopped"
    for _ in range(_TRIES):
        for group_id, answer in groups.group_offsets(candidates).items():
            if not isinstance(answer, Unanswered):
                return group_id
            reason = answer.reason
        if stop.wait(_PAUSE_SECONDS):
            break
    raise NoCoordinatorError(f"no group coordinator answers: {reason}")
