"""At each sample, ask the coordinators about groups and commits that may be deleted (`integrity.reconcile`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice

import pyarrow as pa

from streaming.combine.partition_state import CommitsVanished
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import GroupVanished
from streaming.group.listing import GroupListing, GroupNotFound
from streaming.integrity.reconcile import (
    MissingCommits,
    Suspect,
    is_read,
    keep_silent_suspects,
    missing_by_partition,
    suspected_commits,
    suspected_groups,
)
from streaming.run.samples.feedback_writer import PendingFacts
from streaming.sampling.groups import Groups
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_view import MonitorView

_log = logging.getLogger(__name__)

GROUPS_PER_SAMPLE = 500
"""Maximum number of groups per sample that are described, and maximum number of groups whose offsets are fetched.

Each of these two steps takes 50 ms of CPU time.
"""


class Reconciler:
    """Finds deleted groups and commits. Only the sampler's thread calls the methods.

    At each sample, all groups are compared with the listing, and the commits of at most GROUPS_PER_SAMPLE groups are
    checked.
    """

    def __init__(
        self, cluster: str, groups: Groups, committed_offsets: CommittedOffsets, stuck_after_seconds: float
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._committed_offsets = committed_offsets
        self._stuck_after_seconds = stuck_after_seconds
        self._suspects: Mapping[str, Suspect] = {}
        self._deleted: dict[str, Suspect] = {}
        self._to_ask: list[str] = []
        self._round_started_seconds = float("-inf")
        self._missing_since_last_sample: list[pa.Table] = []
        self._unread: list[MissingCommits] = []

    def vanished_groups(
        self, before: MonitorView, now: MonitorView, listing: GroupListing, sample: ClusterSample
    ) -> PendingFacts:
        """Return facts about groups that are certainly deleted. `before` must be older than the listing."""
        self._suspects = keep_silent_suspects(self._suspects, now.groups, listing)
        self._deleted = {group_id: suspect for group_id, suspect in self._deleted.items() if group_id in self._suspects}
        unconfirmed = (
            (group_id, suspect)
            for group_id, suspect in self._suspects.items()
            if group_id not in self._deleted and is_read(suspect, now.health.positions)
        )
        to_confirm = dict(islice(unconfirmed, GROUPS_PER_SAMPLE))
        if to_confirm:
            types = {group_id: now.groups[group_id].snapshot.group_type for group_id in to_confirm}
            answers = self._groups.describe_groups(types)
            self._deleted |= {
                name: suspect for name, suspect in to_confirm.items() if isinstance(answers[name], GroupNotFound)
            }
        self._suspects = {**suspected_groups(before.groups, listing, sample), **self._suspects}
        return {
            group_id: (GroupVanished(suspect.after_offset, suspect.listed_at_ms, suspect.offsets_topic_partition),)
            for group_id, suspect in self._deleted.items()
        }

    def vanished_commits(
        self, now: MonitorView, sample: ClusterSample, now_seconds: float
    ) -> Mapping[int, CommitsVanished]:
        """Return the commits that are certainly deleted, by partition of `__consumer_offsets`."""
        for missing in self._missing_since_last_sample:
            self._unread += missing_by_partition(missing, sample)
        proven = [commits for commits in self._unread if is_read(commits.suspect, now.health.positions)]
        self._unread = [commits for commits in self._unread if commits not in proven]
        self._missing_since_last_sample = self._ask_some(sample, now_seconds)
        return {commits.suspect.offsets_topic_partition: commits.vanished for commits in proven}

    def _ask_some(self, sample: ClusterSample, now_seconds: float) -> list[pa.Table]:
        if not self._to_ask and now_seconds - self._round_started_seconds >= self._stuck_after_seconds:
            self._round_started_seconds = now_seconds
            self._to_ask = self._committed_offsets.group_ids()
        some, self._to_ask = self._to_ask[:GROUPS_PER_SAMPLE], self._to_ask[GROUPS_PER_SAMPLE:]
        if not some:
            return []
        known = self._committed_offsets.commits_of_groups(some)
        missing = suspected_commits(known, self._groups.group_offsets(some), sample.topics)
        if missing.num_rows:
            _log.info("%s: the coordinators do not return %d known commits", self._cluster, missing.num_rows)
        return [missing]
