"""Compute the advice for late groups (`evaluation.what_if.advice`), and keep the advice until its inputs change.

1. The advice for a group is computed when the cause of the group's lag becomes known. It is computed again if the
   assignment, the members, the cause or the known capacities change, and after REPEAT_MS. A shorter interval is not
   useful, because the rates in the advice are averages over five minutes.
2. At each sample, the computation stops after about MAX_SECONDS. Groups whose advice is oldest come first. The other
   groups follow at a later sample. Until then, a group with unchanged inputs keeps its old advice. A group with changed
   inputs has no advice.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from streaming.evaluation.assignment.leader import UNRECOGNISED
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.what_if.advice import ADVISED_KINDS, advise, late_group_inputs
from streaming.evaluation.what_if.inputs import group_produce_rates, what_if_refusal
from streaming.group.members import members
from streaming.run.samples.lag.work_watch import current_evaluation
from streaming.state.monitor_view import MonitorView

REPEAT_MS = 60_000
MAX_SECONDS = 0.5


class _KnownAdvice(NamedTuple):
    inputs: Hashable
    computed_at_ms: int
    text: str | None
    """None if the inputs result in no advice."""


class LagAdvice:
    """The advice for all late groups. Only the sampler's thread calls the methods."""

    def __init__(self) -> None:
        self._known: Mapping[str, _KnownAdvice] = {}

    def add(
        self, explained: Mapping[str, ExplainedLag], view: MonitorView, lag: LagEvaluation, sample: ClusterSample
    ) -> Mapping[str, ExplainedLag]:
        """Return the explained lags. Each cause contains the advice for it, if there is advice."""
        inputs = dict(_inputs_of_advised_groups(explained, view))
        known = {group_id: one for group_id, one in self._known.items() if inputs.get(group_id) == one.inputs}
        due = [group_id for group_id in inputs if _is_due(known.get(group_id), sample.sampled_at_ms)]
        end = time.monotonic() + MAX_SECONDS
        for group_id in sorted(due, key=lambda one: (known[one].computed_at_ms if one in known else 0, one)):
            if time.monotonic() >= end:
                break
            text = _advice(explained[group_id], view, group_id, lag, sample)
            known[group_id] = _KnownAdvice(inputs[group_id], sample.sampled_at_ms, text)
        self._known = known
        return {group_id: _with_advice(one, known.get(group_id)) for group_id, one in explained.items()}


def _inputs_of_advised_groups(
    explained: Mapping[str, ExplainedLag], view: MonitorView
) -> Iterator[tuple[str, Hashable]]:
    for group_id, one in explained.items():
        record = view.groups.get(group_id)
        evaluation = current_evaluation(record) if record is not None else None
        if one.cause.kind in ADVISED_KINDS and one.work is not None and evaluation is not None:
            member_ids = frozenset(member.member_id for member in one.work.members)
            capacities = sum(member.capacity_records_per_second is not None for member in one.work.members)
            yield group_id, (evaluation.position, member_ids, one.cause.identity, capacities)


def _is_due(known: _KnownAdvice | None, now_ms: int) -> bool:
    """Return True if the advice is missing or older than REPEAT_MS. Also return True if the clock was set back."""
    return known is None or not 0 <= now_ms - known.computed_at_ms < REPEAT_MS


def _advice(
    explained: ExplainedLag, view: MonitorView, group_id: str, lag: LagEvaluation, sample: ClusterSample
) -> str | None:
    record, work = view.groups[group_id], explained.work
    own = record.evaluation.own if record.evaluation else None
    leader = (record.evaluation and record.evaluation.assigned_by) or UNRECOGNISED
    is_blocked = view.blocked_groups()(group_id)
    is_evaluated = own is not None and own.is_evaluated
    refusal = what_if_refusal(record.snapshot, is_blocked=is_blocked, is_evaluated=is_evaluated)
    if own is None or work is None or refusal is not None:
        return None
    rates = group_produce_rates(lag.rows_of(group_id), members(record.snapshot), sample)
    capacities = (member.capacity_records_per_second for member in work.members)
    late = late_group_inputs(record.snapshot, rates, capacities, own.strategy, leader)
    advice = advise(explained.cause.kind, late) if late is not None else None
    return advice.text if advice is not None else None


def _with_advice(explained: ExplainedLag, known: _KnownAdvice | None) -> ExplainedLag:
    if known is None or known.text is None:
        return explained
    return explained._replace(cause=replace(explained.cause, advice=known.text))
