"""Run a real Prometheus, a real Alertmanager and a receiver of notifications, each with its own port."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import yaml
from typing_extensions import Self

from streaming.child_process import ChildProcess
from streaming.embedded.ports import free_port
from tests.dashboards.rules import FILES
from tests.end_to_end.monitor_process import until
from tests.monitoring_programs import monitoring_programs

START_SECONDS = 60.0
GRACE_SECONDS = 20.0
# A slow group also has the status STALL for some seconds. A busy machine misses some scrapes of one second.
ALERTS_WITH_THEIR_OWN_DELAY = {"KafkaGroupStopped", "RebalanceMonitorDown"}


def rules_with_short_delays(folder: Path) -> list[Path]:
    """Write the project's rules. Each alert fires after five seconds, and ends as soon as its expression ends.

    ALERTS_WITH_THEIR_OWN_DELAY keep theirs.
    """
    folder.mkdir()
    for file in FILES:
        rules = yaml.safe_load(file.read_text())
        for rule in (rule for group in rules["groups"] for rule in group["rules"]):
            rule.pop("keep_firing_for", None)
            if "for" in rule and rule["alert"] not in ALERTS_WITH_THEIR_OWN_DELAY:
                rule["for"] = "5s"
        (folder / file.name).write_text(yaml.safe_dump(rules))
    return sorted(folder.iterdir())


class Sample(NamedTuple):
    """One element of a query result."""

    labels: dict[str, str]
    value: float


class _Server(AbstractContextManager["_Server"]):
    """A server that is ready when `/-/ready` returns 200. It writes all its files below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "log"
        self._process: ChildProcess | None = None

    @property
    def address(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """Write its configuration and return its command line."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = ChildProcess(self.command(), self.log)
        try:
            until(f"{self.address} to be ready", self._is_ready, START_SECONDS)
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.stop(GRACE_SECONDS)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.exit_code is None, self.log.read_text()
        try:
            with urlopen(f"{self.address}/-/ready", timeout=10) as answer:  # noqa: S310 - http, to loopback
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def ask(self, path: str, **parameters: str) -> Any:  # noqa: ANN401 - JSON
        """Return one JSON answer of its API."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        with urlopen(f"{self.address}{path}{query}", timeout=30) as answer:  # noqa: S310 - as above
            return json.load(answer)


class RealPrometheus(_Server):
    """A Prometheus that scrapes targets (`host:port`) every second as job `rebalance-monitor` and evaluates rule files.

    With `only_groups` it keeps only the series of these groups and the series without a group.
    """

    def __init__(  # noqa: PLR0913 - one parameter for each part of the configuration
        self,
        folder: Path,
        targets: Sequence[str],
        *,
        rule_files: Sequence[Path] = (),
        alertmanager: str | None = None,
        external_labels: Mapping[str, str] | None = None,
        interval: str = "1s",
        only_groups: Sequence[str] = (),
    ) -> None:
        super().__init__(folder)
        self._configuration: dict[str, Any] = {
            "global": {
                "scrape_interval": interval,
                "evaluation_interval": interval,
                "external_labels": dict(external_labels or {}),
            },
            "rule_files": [str(file) for file in rule_files],
            "scrape_configs": [{"job_name": "rebalance-monitor", "static_configs": [{"targets": list(targets)}]}],
        }
        if only_groups:
            kept = {"action": "keep", "source_labels": ["group"], "regex": "|".join(["", *map(re.escape, only_groups)])}
            self._configuration["scrape_configs"][0]["metric_relabel_configs"] = [kept]
        if alertmanager is not None:
            where = [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}]
            self._configuration["alerting"] = {"alertmanagers": where}

    def command(self) -> list[str]:
        """Write its configuration and return its command line."""
        configuration = self.folder / "prometheus.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration))
        return [
            monitoring_programs().prometheus,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            f"--web.external-url={self.address}",
        ]

    def query(self, promql: str) -> list[Sample]:
        """Return the elements of a vector at the current time, or a scalar as one element without labels.

        Raise HTTPError if the PromQL is invalid.
        """
        data = self.ask("/api/v1/query", query=promql)["data"]
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(element["metric"], float(element["value"][1])) for element in data["result"]]

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that are pending or firing."""
        active: list[dict[str, Any]] = self.ask("/api/v1/alerts")["data"]["alerts"]
        return active


class RealAlertmanager(_Server):
    """An Alertmanager with the given configuration, in which the caller has set the receiver."""

    def __init__(self, folder: Path, configuration: Mapping[str, Any]) -> None:
        super().__init__(folder)
        self._configuration = configuration

    def command(self) -> list[str]:
        """Write its configuration and return its command line. The empty cluster address disables clustering."""
        configuration = self.folder / "alertmanager.yaml"
        configuration.write_text(yaml.safe_dump(dict(self._configuration)))
        return [
            monitoring_programs().alertmanager,
            f"--config.file={configuration}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        ]

    def send(self, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Send alerts as a Prometheus would."""
        body, kind = json.dumps(list(alerts)).encode(), {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.address}/api/v2/alerts", body, kind), timeout=30):  # noqa: S310 - as above
            pass


class NotificationReceiver:
    """A webhook receiver that keeps every notification of an Alertmanager, in order."""

    def __init__(self) -> None:
        self.notifications: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Return the webhook's URL."""
        return f"http://127.0.0.1:{self._server.server_port}/page"

    def firing(self, alert: str, receiver: str | None = None) -> list[dict[str, Any]]:
        """Return the notified firing alerts of this name, each with its labels and annotations.

        With `receiver`, return only those that were sent to this receiver of Alertmanager's configuration.
        """
        sent = [notification for notification in self.notifications if receiver in (None, notification["receiver"])]
        notified = [one for notification in sent for one in notification["alerts"]]
        return [one for one in notified if one["status"] == "firing" and one["labels"]["alertname"] == alert]

    def close(self) -> None:
        """Stop the receiver; for `contextlib.closing`."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        notifications = self.notifications

        class Webhook(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                notifications.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Write no log."""

        return Webhook
