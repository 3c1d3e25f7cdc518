"""Example of an alert receiver. Alertmanager sends notifications to this webhook, which logs one line for each alert.

The line shows the name of the receiver in Alertmanager's configuration, and the alert's status, labels and summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 9094


def lines(notification: dict[str, Any]) -> Iterator[str]:
    """Return one log line for each alert.

    Clients choose the names of groups, and a name can contain line breaks. So the labels and the summary are escaped as
    JSON.
    """
    for alert in notification["alerts"]:
        labels = json.dumps(alert["labels"], sort_keys=True)
        summary = json.dumps(alert["annotations"].get("summary", ""))
        yield f"{notification['receiver']}: {alert['status']} {labels} {summary}"


class Webhook(BaseHTTPRequestHandler):
    """Receives notifications in Alertmanager's format."""

    timeout = 30

    def do_POST(self) -> None:
        """Log the alerts of one notification."""
        for line in lines(json.loads(self.rfile.read(int(self.headers["Content-Length"])))):
            print(f"{line}\n", end="", flush=True)  # noqa: T201 - one write, so lines of two requests never mix
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no access log."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", PORT), Webhook).serve_forever()
