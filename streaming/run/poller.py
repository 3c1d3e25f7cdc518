"""Asks coordinators instead of reading their log (`source.kind = "admin-api"`), and sends the query what is new.

Level-triggered: each poll is compared with what the query's state holds, never with the poll before. So a poll is
compared only when all that was sent has arrived there, a restart needs no memory of its own, and files that an
interrupted batch left behind are waited for like any others.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping

from kafka.errors import KafkaError

from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import POLLED_PARTITION
from streaming.group.not_known import HIDDEN_GROUPS, POLLED
from streaming.polled.differences import Differences, KnownState, commits_by_group, differences
from streaming.polled.poll import Poll, to_describe
from streaming.run.failures import Failures
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
    """One poll after another until stopped. The first complete one always sends a row: readiness waits for that."""

    def __init__(  # noqa: PLR0913 - everything a poll touches, named
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
        self._failures = Failures(cluster, "a poll")
        self._sent_up_to = _last_number_on_its_way(files)
        self._marked_at: int | None = None
        self._complete_seconds = float("-inf")

    def run(self, stop: threading.Event) -> None:
        """Poll until `stop` is set. Brokers that do not answer make us not ready; they never end the polling."""
        while not stop.is_set():
            started, pause = time.monotonic(), _LOOK_AGAIN_SECONDS
            try:
                self.poll()
                pause = self._interval_seconds if self._has_arrived() else _LOOK_AGAIN_SECONDS
                self._failures.take_success()
            except KafkaError as error:
                _log.warning("%s: groups cannot be asked for (%s); trying again", self._cluster, error)
                pause = self._interval_seconds
            except Exception as error:  # noqa: BLE001 - whatever it is, on-call must see "not ready", not a dead thread
                self._failures.take(error)
                pause = self._interval_seconds
            stop.wait(max(_LOOK_AGAIN_SECONDS, pause - (time.monotonic() - started)))

    def poll(self) -> None:
        """Ask, compare and send; nothing as long as the query has not taken in what was sent before."""
        if not self._has_arrived():
            return
        started = time.monotonic()
        known = self._known()
        poll = self._ask(known)
        is_marked = poll.is_complete and self._marked_at is None
        found = differences(poll, known, is_marked=is_marked)
        self._send(found)
        if poll.is_complete:
            self._complete_seconds = time.monotonic()
            self._marked_at = found.last_number if is_marked else self._marked_at
            self._monitor_state.put_poll(found.last_number if found.rows else known.last_number, poll.began_at_ms)
        _log.debug(
            "%s: poll: %d groups, %d new rows, %.2f s",
            self._cluster,
            len(poll.listing.groups),
            len(found.rows),
            time.monotonic() - started,
        )
        self._monitor_state.put_health(not_known=(*POLLED, HIDDEN_GROUPS) if poll.hides_groups else POLLED)

    def targets(self, _sample: ClusterSample) -> Mapping[int, int] | None:
        """Where the query has to get to be ready; None before the first complete poll."""
        return None if self._marked_at is None else {POLLED_PARTITION: self._marked_at + 1}

    def is_fresh(self) -> bool:
        """Whether the last complete poll is the present."""
        return time.monotonic() - self._complete_seconds <= self._stale_after_seconds

    def _has_arrived(self) -> bool:
        """Positions are put into the registry last of all that a batch brings: then commits are in the book, too."""
        taken_in = self._monitor_state.view().health.positions.get(POLLED_PARTITION, 0)
        if taken_in <= self._sent_up_to:
            # A file that is gone without effect is lost: what it said is found missing again.
            self._sent_up_to = _last_number_on_its_way(self._files)
        return taken_in > self._sent_up_to

    def _known(self) -> KnownState:
        view = self._monitor_state.view()
        groups = {group_id: record.snapshot for group_id, record in view.groups.items()}
        last_number = view.health.positions.get(POLLED_PARTITION, 0) - 1
        return KnownState(groups, commits_by_group(self._committed_offsets.view().commits), last_number)

    def _ask(self, known: KnownState) -> Poll:
        """Members first, commits last: lag, told from them and from end offsets sampled later, is only overstated."""
        began_at_ms = self._now_ms()
        listing = self._groups.list_groups()
        descriptions = self._groups.describe_groups(to_describe(listing, known.groups, known.commits))
        return Poll(began_at_ms, listing, descriptions, self._groups.group_offsets(listing.groups))

    def _send(self, found: Differences) -> None:
        if found.rows:
            name = _FILE.format(first=found.first_number, last=found.last_number)
            self._files.write(f"{FEEDBACK_FOLDER}/{name}", state_rows_file(found.rows))
            self._sent_up_to = found.last_number


def _last_number_on_its_way(files: Files) -> int:
    """The highest number in files that the query has not removed yet: it may have taken them in, or may be about to."""
    names = (_FILE_NAME.fullmatch(name) for name in files.names(FEEDBACK_FOLDER))
    return max((int(name[1]) for name in names if name), default=-1)
