"""Find the groups that do not commit around a rebalance while records wait.

The rule numbers continue after those of `reconciliation.py`.

18. `long_commit_gap`: the group has members, and all of the following statements are true.
    - The last commit is older than the group's limit `max_commit_gap_seconds`.
    - The group has not committed since its last rebalance, or listings show a rebalance in progress.
    - Records have waited for longer than the limit. The oldest waiting record was written at most `window_seconds`
      after the rebalance. If the record was written later, the rebalance is not the cause.
    If it is unknown whether records wait, the condition is unknown.
19. If the group had no members after its last commit, the gap starts when the first member joins. Without this rule, a
    nightly job would have a gap of one day at each start.
20. The condition stays active for at least `window_seconds`, so users can see a gap that has already ended.

Each gap is in the table `commit_gaps`. The histogram of commit gaps contains each gap with a known length
(`combine/gaps.py`). Some commit gaps are harmless. For example, the group of a quiet topic does not commit for an hour,
because it receives no records. `__consumer_offsets` does not show whether records waited, so the monitor needs samples
to find the harmful gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streaming.evaluation.conditions.silence import GroupCommits
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.rebalances.rebalances import BECAME_EMPTY

LONG_COMMIT_GAP = "long_commit_gap"


def long_commit_gap(  # noqa: PLR0913, PLR0917 - the inputs of the rules
    recent: Sequence[RebalanceSummary],
    rebalancing_since_ms: int | None,
    commits: GroupCommits | None,
    now_ms: int,
    limits: Limits,
    max_gap_seconds: float,
) -> Mapping[str, str | None]:
    """Return the name and the text of the condition (rules 18 and 19), or an empty mapping if it is not active.

    The text is None if it is unknown whether the condition is active.

    >>> recent = [RebalanceSummary(100_000, 2, "rebalance", (), "range", 3)]
    >>> commits = GroupCommits(last_ms=90_000, partitions=1, wait=True, wait_seconds=400.0)
    >>> long_commit_gap(recent, None, commits, 500_000, Limits(), 300)
    {'long_commit_gap': 'no commits for 410 s around the rebalance at 00:01:40 UTC; the limit is 300 s'}
    """
    is_rebalancing = rebalancing_since_ms is not None
    if commits is None or not (is_rebalancing or (recent and recent[-1].members)):
        return {}
    rebalance_ms = recent[-1].timestamp_ms if rebalancing_since_ms is None else rebalancing_since_ms
    gap_ms = now_ms - max(commits.last_ms, members_since_ms(recent))
    if gap_ms <= 1000 * max_gap_seconds or (commits.last_ms >= rebalance_ms and not is_rebalancing):
        return {}
    if commits.wait_seconds <= max_gap_seconds:
        return {LONG_COMMIT_GAP: None} if commits.wait is None else {}
    if now_ms - 1000 * commits.wait_seconds > rebalance_ms + 1000 * limits.window_seconds:
        return {}
    second = rebalance_ms // 1000
    time = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
    gap = f"no commits for {gap_ms // 1000} s around the rebalance at {time} UTC"
    return {LONG_COMMIT_GAP: f"{gap}; the limit is {max_gap_seconds:g} s"}


def members_since_ms(recent: Sequence[RebalanceSummary]) -> int:
    """Return the last time at which the group changed from no members to at least one member, or 0 if unknown."""
    since_ms, had_members = 0, True
    for rebalance in recent:
        if rebalance.members and not had_members:
            since_ms = rebalance.timestamp_ms
        had_members = bool(rebalance.members)
    return since_ms


def time_without_members_ms(recent: Sequence[RebalanceSummary], since_ms: int, until_ms: int) -> int:
    """Return for how long in the given period the group had no members, although it had members before.

    >>> emptied = RebalanceSummary(200_000, 3, "became_empty", (), "range", 0)
    >>> returned = RebalanceSummary(260_000, 4, "rebalance", (), "range", 2)
    >>> time_without_members_ms([emptied, returned], 210_000, 300_000)
    50000
    """
    without_ms, empty_since_ms = 0, None
    for rebalance in recent:
        if empty_since_ms is not None and rebalance.members:
            without_ms += max(0, rebalance.timestamp_ms - max(empty_since_ms, since_ms))
            empty_since_ms = None
        elif empty_since_ms is None and rebalance.kind == BECAME_EMPTY:
            empty_since_ms = rebalance.timestamp_ms
    return without_ms if empty_since_ms is None else without_ms + max(0, until_ms - max(empty_since_ms, since_ms))
