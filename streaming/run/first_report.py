"""After the first sample of a cluster, log what the monitor found in the cluster (`doctor.first_run`).

1. The report is logged once for each cluster, even if the watch of the cluster is started again.
2. The report uses the first sample of the current watch, not a sample of an earlier watch.
3. A separate thread requests the monitor's permissions, so the requests do not delay the samples.
"""

from __future__ import annotations

import logging
import threading

from kafka.errors import KafkaError

from streaming.config.settings import ADMIN_API_SOURCE
from streaming.doctor.ask_permissions import request_permissions
from streaming.doctor.first_run import FirstSample, first_run_lines
from streaming.doctor.permissions import Permissions, used_permissions
from streaming.group.listing import Unanswered
from streaming.group.not_known import POLLED
from streaming.sampling.connection import Connection
from streaming.sampling.coordinators import error_name
from streaming.state.monitor_state import MonitorState

_CHECK_SECONDS = 0.3

_log = logging.getLogger(__name__)


class FirstReport:
    """The report of one cluster. All watches of the cluster use the same object."""

    def __init__(self, cluster: str, monitor_state: MonitorState) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._is_logged = False

    def run(self, connection: Connection, page: str, stop: threading.Event) -> None:
        """Wait for the first sample, then log the report (rules 1 and 2). `page` is the URL of the monitor's pages."""
        earlier = self._monitor_state.view().sample
        while not self._is_logged and not stop.wait(_CHECK_SECONDS):
            view = self._monitor_state.view()
            if view.sample is not None and view.sample is not earlier and view.listing is not None:
                source = view.health.source
                first = FirstSample(
                    brokers=view.sample.brokers,
                    kafka_version=connection.kafka_version,
                    listing=view.listing,
                    permissions=_request_permissions(connection, source),
                    not_known=POLLED if source == ADMIN_API_SOURCE else (),
                    page=page,
                )
                for line in first_run_lines(first):
                    _log.info("%s: %s", self._cluster, line)
                self._is_logged = True


def _request_permissions(connection: Connection, source: str) -> Permissions:
    try:
        return request_permissions(connection, source)
    except KafkaError as error:
        return dict.fromkeys(used_permissions(source), Unanswered(error_name(error)))
