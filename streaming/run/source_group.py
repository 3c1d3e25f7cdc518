"""The group id of Spark's Kafka source, which belongs to no group and asks a group coordinator all the same.

Before its first read the source's consumer asks what its group has committed, which is nothing. It asks until it has
an answer, and nothing can interrupt it. The id decides which coordinator that is, and Spark draws the id at random. A
coordinator that cannot load its partition of `__consumer_offsets`, for example because of a damaged record, never
answers, and the query waited for it for ever without a word. So the id is one whose coordinator has answered us.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from uuid import uuid4

from streaming.group.listing import Unanswered
from streaming.sampling.groups import Groups

PATIENCE_SECONDS = 30.0
"""Coordinators that have just started answer after they have loaded their groups."""

_CANDIDATES = 20
_PAUSE_SECONDS = 1.0


class NoCoordinatorError(Exception):
    """No group coordinator answers, so Spark's Kafka source cannot start."""


def candidate_ids() -> tuple[str, ...]:
    """Return ids that nobody else has, spread over the partitions of `__consumer_offsets` by their hashes.

    Spark keeps consumers by group and topic partition: two clusters' queries of one group got each other's.
    """
    return tuple(f"kafka-rebalance-monitor-{uuid4()}" for _ in range(_CANDIDATES))


def source_group(groups: Groups, stop: threading.Event, candidates: Collection[str]) -> str:
    """Return an id whose coordinator answers. Raises NoCoordinatorError when patience is over or `stop` is set."""
    reason = "stopped"
    for _ in range(int(PATIENCE_SECONDS / _PAUSE_SECONDS)):
        for group_id, answer in groups.group_offsets(candidates).items():
            if not isinstance(answer, Unanswered):
                return group_id
            reason = answer.reason
        if stop.wait(_PAUSE_SECONDS):
            break
    raise NoCoordinatorError(f"no group coordinator answers: {reason}")
