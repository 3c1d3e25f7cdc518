"""The group id of Spark's Kafka source. The source joins no group, but it asks a group coordinator before it reads.

It asks what its group has committed, which is nothing. It repeats the question until there is an answer, and nothing
can interrupt it. The group id decides which coordinator is asked, and Spark makes a random id. A coordinator that
cannot load its partition of `__consumer_offsets`, for example because of a damaged record, never answers: the query
waited for ever, and no line said so. So the id is one whose coordinator has answered the monitor.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from uuid import uuid4

from streaming.group.listing import Unanswered
from streaming.sampling.groups import Groups

_CANDIDATES = 20
_TRIES = 30
"""With pauses: a coordinator that has just started answers after it has loaded its groups."""
_PAUSE_SECONDS = 1.0


class NoCoordinatorError(Exception):
    """No group coordinator answers, so Spark's Kafka source cannot start."""


def candidate_ids() -> tuple[str, ...]:
    """Return ids that no other query has. Their hashes spread over the partitions of `__consumer_offsets`.

    Spark keeps its consumers by group id and topic partition, but not by cluster: the queries of two clusters with one
    group id shared consumers, and failed.
    """
    return tuple(f"kafka-rebalance-monitor-{uuid4()}" for _ in range(_CANDIDATES))


def source_group(groups: Groups, stop: threading.Event, candidates: Collection[str]) -> str:
    """Return an id whose coordinator answers. Raises NoCoordinatorError after some 30 s, or when `stop` is set."""
    reason = "stopped"
    for _ in range(_TRIES):
        for group_id, answer in groups.group_offsets(candidates).items():
            if not isinstance(answer, Unanswered):
                return group_id
            reason = answer.reason
        if stop.wait(_PAUSE_SECONDS):
            break
    raise NoCoordinatorError(f"no group coordinator answers: {reason}")
