"""The target a group coordinator computed (KIP-848), held against the strategy it computed it by.

The coordinator moves on from the targets of the epoch before, which the log has and compaction takes, and its assignors
change with Kafka's version. So the target is not replayed from its inputs but held against what the strategy makes of
it: a strategy that is given its own answer leaves it as it is. Rules:

1. Targets of a KIP-848 group: each strategy assigns with the targets as what members have now. The verdicts are those
   of `drift`, with `match` for a target the strategy would not touch.
2. Most members name the strategy. If no member names one, it is the broker's default, which the coordinator reports
   and no record has. Without a report the verdict is the better of `uniform` and `range`, and `unknown` (reason
   `server_assignor_not_told`) where the target is neither's.
3. Where several strategies have the most votes, the coordinator takes any of them (the maximum over a hash map): the
   verdict is the best of theirs, `drift` too if the target breaks the rules of each. If one of them is an assignor that
   only the broker has, it is `unknown` where the target is none of the others'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assignors import PartitionAssignor
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs
from streaming.evaluation.assignment.drift import (
    DIFFERS_FROM_JAVA,
    DRIFT,
    EQUIVALENT,
    MATCH,
    UNKNOWN,
    StrategyDrift,
    not_evaluated,
    strategy_drift,
)
from streaming.evaluation.assignment.leader import BROKER, Leader
from streaming.group.snapshot import GroupSnapshot

THE_BROKER = Leader(BROKER, (), (BROKER,))
"""Who assigned."""

SERVER_ASSIGNORS: Mapping[str, str] = {"uniform": "uniform", "range": "server-range"}
"""Names of the coordinator's assignors, and of ours."""

_BEST_FIRST = (MATCH, EQUIVALENT, DIFFERS_FROM_JAVA)


def consumer_drifts(
    snapshot: GroupSnapshot, known: AssignmentInputs, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    """Verdicts on the targets of a consumer group, the group's own strategy among them."""
    own = SERVER_ASSIGNORS.get(snapshot.protocol or "")
    verdicts = tuple(strategy_drift(known, one, THE_BROKER, is_group_strategy=one.name == own) for one in strategies)
    if own is not None and any(verdict.is_group_strategy for verdict in verdicts):
        return verdicts
    if snapshot.protocol is not None:
        return (not_evaluated(known, snapshot.protocol, "strategy_not_known"), *verdicts)
    voted = snapshot.modern.server_assignors() if snapshot.modern else ()
    wanted = {SERVER_ASSIGNORS.get(name, name) for name in voted or SERVER_ASSIGNORS}
    candidates = [one for one in strategies if one.name in wanted.intersection(SERVER_ASSIGNORS.values())]
    evaluated = [strategy_drift(known, one, THE_BROKER, is_group_strategy=True) for one in candidates]
    best = _best(evaluated, is_one_of_these=bool(voted) and len(candidates) == len(wanted))
    return (best, *(verdict for verdict in verdicts if verdict.strategy != best.strategy))


def _best(candidates: Sequence[StrategyDrift], *, is_one_of_these: bool) -> StrategyDrift:
    """The best verdict; `is_one_of_these` says that no other strategy may be in use."""
    for verdict in _BEST_FIRST:
        if (found := next((one for one in candidates if one.verdict == verdict), None)) is not None:
            return found
    if candidates and candidates[0].verdict != DRIFT:
        return candidates[0]
    if candidates and is_one_of_these:
        return min(candidates, key=lambda one: one.drift_partitions or 0)
    return StrategyDrift("", True, UNKNOWN, "server_assignor_not_told")
