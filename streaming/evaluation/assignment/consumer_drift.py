"""Compare the targets of a KIP-848 group with the strategy that the group coordinator used.

The coordinator computes new targets from the targets of the previous epoch. Compaction may have removed the previous
targets. Also, the coordinator's assignors differ between Kafka versions. So the monitor cannot repeat the computation
of the targets. Instead, the monitor passes the targets to the strategy as the partitions that the members already own.
A strategy does not change targets that it has computed itself. Rules:

1. The input of each strategy is a group in which each member owns the partitions of its target. The verdict is `match`
   if the strategy leaves the targets unchanged. The other verdicts are the same as in `drift`.
2. Each member can vote for an assignor. The group's own strategy is the assignor with the most votes. If no member
   votes, the coordinator uses its default assignor. No record contains the default assignor, so the monitor requests
   the default assignor from the coordinator. Until the coordinator responds, the monitor computes one verdict for
   `uniform` and one verdict for `range`. The better verdict counts. If both verdicts are `drift`, the result is
   `unknown` for the reason `server_assignor_not_told`.
3. If several assignors have the most votes, the coordinator can use any of these assignors. So the monitor computes a
   verdict for each of these assignors. The best verdict counts. If all verdicts are `drift`, the result is `drift`. But
   if the monitor does not implement one of the assignors, the result is `unknown` instead of `drift`.
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
    evaluate_common_rules,
    strategy_drift,
)
from streaming.evaluation.assignment.leader import BROKER, Leader
from streaming.group.snapshot import GroupSnapshot

THE_BROKER = Leader(BROKER, (), (BROKER,))
"""The leader of every KIP-848 group is the group coordinator."""

SERVER_ASSIGNORS: Mapping[str, str] = {"uniform": "uniform", "range": "server-range"}
"""Maps each assignor name of the coordinator to the monitor's name for the same assignor."""

_BEST_FIRST = (MATCH, EQUIVALENT, DIFFERS_FROM_JAVA)


def consumer_drifts(
    snapshot: GroupSnapshot, inputs: AssignmentInputs, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    """Compare the targets of a KIP-848 consumer group with each strategy, and return one verdict for each strategy."""
    own = SERVER_ASSIGNORS.get(snapshot.protocol or "")
    verdicts = tuple(strategy_drift(inputs, one, THE_BROKER, is_group_strategy=one.name == own) for one in strategies)
    if own is not None and any(verdict.is_group_strategy for verdict in verdicts):
        return verdicts
    if snapshot.protocol is not None:
        return (evaluate_common_rules(inputs, snapshot.protocol, "strategy_not_known"), *verdicts)
    voted = snapshot.modern.server_assignors() if snapshot.modern else ()
    wanted = {SERVER_ASSIGNORS.get(name, name) for name in voted or SERVER_ASSIGNORS}
    candidates = [one for one in strategies if one.name in wanted.intersection(SERVER_ASSIGNORS.values())]
    evaluated = [strategy_drift(inputs, one, THE_BROKER, is_group_strategy=True) for one in candidates]
    best = _best_verdict(evaluated, is_complete=bool(voted) and len(candidates) == len(wanted))
    return (best, *(verdict for verdict in verdicts if verdict.strategy != best.strategy))


def _best_verdict(candidates: Sequence[StrategyDrift], *, is_complete: bool) -> StrategyDrift:
    """Return the best verdict. `is_complete` is True if `candidates` includes every possible assignor."""
    for verdict in _BEST_FIRST:
        if (best := next((one for one in candidates if one.verdict == verdict), None)) is not None:
            return best
    if candidates and candidates[0].verdict != DRIFT:
        return candidates[0]
    if candidates and is_complete:
        return min(candidates, key=lambda one: one.drift_partitions or 0)
    return StrategyDrift("", True, UNKNOWN, "server_assignor_not_told")
