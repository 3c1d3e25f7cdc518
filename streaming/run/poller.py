"""Poll the group coordinators, and send the changes to the query (`source.kind = "admin-api"`).

In the polling mode, the monitor does not read `__consumer_offsets`. Each poll is compared with the state of the query,
never with the previous poll. So a poll starts only after the query has read all rows of the earlier polls. The poller
needs no stored state after a restart. The first poll waits until the query has read the files of an earlier run.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping

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

_FILE = "polled-{first}-{last}.json"
_FILE_NAME = re.compile(r"polled-\d+-(\d+)\.json")
_LOOK_AGAIN_SECONDS = 0.3

_log = logging.getLogger(__name__)


class Poller:
    """Polls the group coordinators in a loop.

    The first complete poll sends a row even if nothing changed. The cluster can become ready after the query has read
    this row.
    """

    def __init__(  # noqa: PLR0913 - everything that a poll uses, as keywords
        self,
        *,
        cluster: str,
        groups: Groups,
        monitor_state: MonitorState,
        committed_offsets: CommittedOffsets,
        files: Files,
        now_ms: Callable[[], int],
        interval_seconds: float,
        stale_after_seconds: float,
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        self._monitor_state = monitor_state
        self._committed_offsets = committed_offsets
        self._files = files
        self._now_ms = now_ms
        self._interval_seconds = interval_seconds
        self._stale_after_seconds = stale_after_seconds
        self._failures = FailureLog(cluster, "a poll")
        self._failed_before = frozenset[str]()
        self._sent_up_to = _last_sent_number(files)
        self._marked_at: int | None = None
        self._complete_seconds = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop` is set. If brokers do not answer, the cluster is not ready, and the poller tries again."""
        while not stop.is_set():
            started, pause = time.monotonic(), _LOOK_AGAIN_SECONDS
            try:
                self.poll()
                pause = self._interval_seconds if self._has_arrived() else _LOOK_AGAIN_SECONDS
                self._failures.reset()
            except Exception as error:  # noqa: BLE001 - after any error, show "not ready" instead of a dead thread
                self._failures.report(error)
                pause = self._interval_seconds
            stop.wait(max(_LOOK_AGAIN_SECONDS, pause - (time.monotonic() - started)))

    def poll(self) -> None:
        """Poll once: request the groups, compare the answers with the known state, and send the changes.

        If the query has not yet read all rows of the earlier polls, do nothing.
        """
        if not self._has_arrived():
            return
        started = time.monotonic()
        known = self._known()
        poll = self._ask(known)
        self._report_failed_requests(poll)
        is_marked = poll.is_complete and self._marked_at is None
        changes = differences(poll, known, is_marked=is_marked)
        self._send(changes)
        if poll.is_complete:
            self._complete_seconds = time.monotonic()
            self._marked_at = changes.last_number if is_marked else self._marked_at
            self._monitor_state.put_poll(changes.last_number if changes.rows else known.last_number, poll.began_at_ms)
        _log.debug(
            "%s: poll: %d groups, %d new rows, %.2f s",
            self._cluster,
            len(poll.listing.groups),
            len(changes.rows),
            time.monotonic() - started,
        )
        self._monitor_state.put_health(not_known=(*POLLED, HIDDEN_GROUPS) if poll.hides_groups else POLLED)

    def targets(self, _sample: ClusterSample) -> Mapping[int, int] | None:
        """Return the position that the query must reach before the cluster is ready. The key is POLLED_PARTITION.

        Return None before the first complete poll.
        """
        return None if self._marked_at is None else {POLLED_PARTITION: self._marked_at + 1}

    def is_fresh(self) -> bool:
        """Return True if the last complete poll is at most `stale_after_seconds` old."""
        return time.monotonic() - self._complete_seconds <= self._stale_after_seconds

    def _has_arrived(self) -> bool:
        """Return True if the monitor state contains all rows that the poller sent.

        A batch first updates the groups and the commits in the monitor state, and then the positions. So the positions
        show which rows the monitor state contains.
        """
        position = self._monitor_state.view().health.positions.get(POLLED_PARTITION, 0)
        if position <= self._sent_up_to:
            # If a file was removed before its rows had an effect, the rows are lost. The next poll sends them again.
            self._sent_up_to = _last_sent_number(self._files)
        return position > self._sent_up_to

    def _known(self) -> KnownState:
        view = self._monitor_state.view()
        groups = {group_id: record.snapshot for group_id, record in view.groups.items()}
        last_number = view.health.positions.get(POLLED_PARTITION, 0) - 1
        return KnownState(groups, commits_by_group(self._committed_offsets.view().commits), last_number)

    def _ask(self, known: KnownState) -> Poll:
        """Request the listing first, then the members, then the commits.

        End offsets are requested after the commits. In the opposite order, the reported lag could be too small.
        """
        began_at_ms = self._now_ms()
        listing = self._groups.list_groups()
        descriptions = self._groups.describe_groups(to_describe(listing, known.groups, known.commits))
        return Poll(began_at_ms, listing, descriptions, self._groups.group_offsets(listing.groups))

    def _report_failed_requests(self, poll: Poll) -> None:
        """Log each reason of failed requests once, until a poll has no request that failed for this reason.

        Missing permissions are not logged here, because `FirstReport` logs them.
        """
        failed = poll.failed_requests()
        for reason in sorted(failed.keys() - PERMISSION_MISSING - self._failed_before):
            group_ids = failed[reason]
            groups = f" (groups: {len(group_ids)}, for example {group_ids[0]!r})" if group_ids else ""
            effect = (
                "the brokers or the monitor do not support some groups, so their states are unknown"
                if reason in NOT_SUPPORTED
                else "a poll is incomplete; trying again"
            )
            _log.warning("%s: %s: %s%s", self._cluster, effect, reason, groups)
        self._failed_before = frozenset(failed)

    def _send(self, changes: Differences) -> None:
        if changes.rows:
            name = _FILE.format(first=changes.first_number, last=changes.last_number)
            self._files.write(f"{FEEDBACK_FOLDER}/{name}", state_rows_file(changes.rows))
            self._sent_up_to = changes.last_number


def _last_sent_number(files: Files) -> int:
    names = (_FILE_NAME.fullmatch(name) for name in files.names(FEEDBACK_FOLDER))
    return max((int(name[1]) for name in names if name), default=-1)
