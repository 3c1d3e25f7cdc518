"""Poll the group coordinators, and send the changes to the query (`source.kind = "admin-api"`).

Each poll is compared with the state of the query, never with the previous poll. So a poll starts only after the query
has read all rows of the earlier polls, including the polls of an earlier run. Therefore, the poller needs no stored
state after a restart.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import POLLED_PARTITION
from streaming.group.not_known import HIDDEN_GROUPS, POLLED
from streaming.polled.differences import Differences, KnownState, commits_by_group, differences
from streaming.polled.poll import NOT_SUPPORTED, PERMISSION_MISSING, Poll, to_describe
from streaming.run.failures import FailureLog
from streaming.sampling.groups import Groups
from streaming.spark.checkpoint_files import FEEDBACK_FOLDER
from streaming.spark.files import Files
from streaming.spark.source import state_rows_file
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from streaming.wall_clock import since_boot_seconds

_FILE = "polled-{first}-{last}.json"
_FILE_NAME = re.compile(r"polled-\d+-(\d+)\.json")
_LOOK_AGAIN_SECONDS = 0.3

_log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class Poller:
    """Polls the group coordinators in a loop.

    After each start of the query and after a suspension of the machine (`start_over`), the first complete poll sends a
    row even if nothing changed. The cluster can be ready only after the query has read this row.
    """

    cluster: str
    groups: Groups
    monitor_state: MonitorState
    committed_offsets: CommittedOffsets
    files: Files
    now_ms: Callable[[], int]
    interval_seconds: float
    stale_after_seconds: float

    def __post_init__(self) -> None:
        """Find out from the file names which rows an earlier run has sent."""
        self._failures = FailureLog(self.cluster, "a poll")
        self._failed_before = frozenset[str]()
        self._refused = frozenset[str]()
        self._sent_up_to = _last_sent_number(self.files)
        self._starts = 0
        self._marked: tuple[int, int] | None = None
        """The number of the last row of the marked poll, and the value of `_starts` at the beginning of this poll."""
        self._complete_seconds = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop` is set. If brokers do not answer, the cluster is not ready, and the poller tries again."""
        while not stop.is_set():
            started = time.monotonic()
            try:
                self.poll()
                pause = self.interval_seconds if self._has_arrived() else _LOOK_AGAIN_SECONDS
                self._failures.reset()
            except Exception as error:  # noqa: BLE001 - after any error, show "not ready" instead of a dead thread
                self._failures.report(error)
                pause = self.interval_seconds
            stop.wait(max(_LOOK_AGAIN_SECONDS, pause - (time.monotonic() - started)))

    def poll(self) -> None:
        """Poll once: request the groups, compare the answers with the known state, and send the changes.

        If the query has not yet read all rows of the earlier polls, do nothing.
        """
        if not self._has_arrived():
            return
        started, starts = time.monotonic(), self._starts
        known = self._known_state()
        poll = self._request(known)
        self._report_failed_requests(poll)
        self._put_refused(poll)
        is_marked = poll.is_complete and (self._marked is None or self._marked[1] != starts)
        changes = differences(poll, known, is_marked=is_marked)
        self._send(changes)
        if poll.is_complete:
            self._complete_seconds = since_boot_seconds()
            self._marked = (changes.last_number, starts) if is_marked else self._marked
            self.monitor_state.put_poll(changes.last_number if changes.rows else known.last_number, poll.began_at_ms)
        _log.debug(
            "%s: poll: %d groups, %d new rows, %.2f s",
            self.cluster,
            len(poll.listing.groups),
            len(changes.rows),
            time.monotonic() - started,
        )

    def start_over(self) -> None:
        """Forget the target. The first complete poll that begins after this call sets the next target."""
        self._starts += 1

    def targets(self, _sample: ClusterSample) -> Mapping[int, int] | None:
        """Return the position that the query must reach, by POLLED_PARTITION. None before the first complete poll."""
        marked = self._marked
        return {POLLED_PARTITION: marked[0] + 1} if marked is not None and marked[1] == self._starts else None

    def is_fresh(self) -> bool:
        """Return True if the last complete poll is at most `stale_after_seconds` old, including suspensions."""
        return since_boot_seconds() - self._complete_seconds <= self.stale_after_seconds

    def _has_arrived(self) -> bool:
        """Return True if the monitor state contains all rows that the poller sent.

        A batch updates the positions last. So the positions show which rows the monitor state contains.
        """
        position = self.monitor_state.view().health.positions.get(POLLED_PARTITION, 0)
        if position <= self._sent_up_to:
            # If a file was removed before its rows had an effect, the rows are lost. The next poll sends them again.
            self._sent_up_to = _last_sent_number(self.files)
        return position > self._sent_up_to

    def _known_state(self) -> KnownState:
        view = self.monitor_state.view()
        groups = {group_id: record.snapshot for group_id, record in view.groups.items()}
        last_number = view.health.positions.get(POLLED_PARTITION, 0) - 1
        return KnownState(groups, commits_by_group(self.committed_offsets.view().commits), last_number)

    def _request(self, known: KnownState) -> Poll:
        """Request the listing first, then the members, then the commits.

        End offsets are requested after the commits. In the opposite order, the reported lag could be too small.
        """
        began_at_ms = self.now_ms()
        listing = self.groups.list_groups()
        descriptions = self.groups.describe_groups(to_describe(listing, known.groups, known.commits))
        return Poll(began_at_ms, listing, descriptions, self.groups.group_offsets(listing.groups))

    def _send(self, changes: Differences) -> None:
        if changes.rows:
            name = _FILE.format(first=changes.first_number, last=changes.last_number)
            self.files.write(f"{FEEDBACK_FOLDER}/{name}", state_rows_file(changes.rows))
            self._sent_up_to = changes.last_number

    def _put_refused(self, poll: Poll) -> None:
        """Update the refused groups. The known commits of a refused group are old.

        If the brokers now return the commits of a group, the group counts as refused until the next poll. At the next
        poll, the query has read the commits.
        """
        before, self._refused = self._refused, poll.refused_groups(self._refused)
        not_known = (*POLLED, HIDDEN_GROUPS) if poll.hides_groups else POLLED
        self.monitor_state.put_health(not_known=not_known, refused_groups=self._refused | before)

    def _report_failed_requests(self, poll: Poll) -> None:
        """Log each reason once until a poll has no such failure. `FirstReport` logs missing permissions instead."""
        failed = poll.failed_requests()
        for reason in sorted(failed.keys() - PERMISSION_MISSING - self._failed_before):
            group_ids = failed[reason]
            groups = f" (groups: {len(group_ids)}, for example {group_ids[0]!r})" if group_ids else ""
            effect = (
                "the brokers or the monitor do not support some groups, so their states are unknown"
                if reason in NOT_SUPPORTED
                else "a poll is incomplete; trying again"
            )
            _log.warning("%s: %s: %s%s", self.cluster, effect, reason, groups)
        self._failed_before = frozenset(failed)


def _last_sent_number(files: Files) -> int:
    names = (_FILE_NAME.fullmatch(name) for name in files.names(FEEDBACK_FOLDER))
    return max((int(name[1]) for name in names if name), default=-1)
