"""Every group's line (`evaluation.severity.summary`), from the present."""

from __future__ import annotations

from streaming.evaluation.severity.summary import GroupSummary, Sampled, lags_by_group, summarized
from streaming.state.registry import Present


def summaries(present: Present, *, is_fresh: bool) -> tuple[GroupSummary, ...]:
    """Every group that exists, sorted by id; none before the log was read to its end once."""
    if not present.health.was_ready:
        return ()
    sampled, is_held_back = _sampled(present, is_fresh=is_fresh), present.held_back_groups()
    return tuple(
        summarized(record, sampled, is_held_back=is_held_back(group_id))
        for group_id, record in present.alive_groups().items()
    )


def summary(present: Present, group_id: str, *, is_fresh: bool) -> GroupSummary | None:
    """The one group; None where there is no such group."""
    if not has_group(present, group_id):
        return None
    is_held_back = present.held_back_groups()(group_id)
    return summarized(present.groups[group_id], _sampled(present, is_fresh=is_fresh), is_held_back=is_held_back)


def has_group(present: Present, group_id: str) -> bool:
    """Whether there is such a group; of none it is said before the log was read to its end once."""
    record = present.groups.get(group_id)
    return record is not None and not record.snapshot.is_over and present.health.was_ready


def _sampled(present: Present, *, is_fresh: bool) -> Sampled:
    if not is_fresh:
        return Sampled()
    return Sampled(present.listing, lags_by_group(present.lag), present.conditions, present.unowned)
