"""An example of a receiver: a webhook that writes one line for each alert of a notification of Alertmanager.

The line shows the receiver of Alertmanager's configuration, the status and the labels of the alert, and its summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 9094


def lines(notification: dict[str, Any]) -> Iterator[str]:
    """Return one line for each alert. Names of groups are hostile text, so JSON escapes all values."""
    for alert in notification["alerts"]:
        labels = json.dumps(alert["labels"], sort_keys=True)
        summary = json.dumps(alert["annotations"].get("summary", ""))
        yield f"{notification['receiver']}: {alert['status']} {labels} {summary}"


class Webhook(BaseHTTPRequestHandler):
    """Accepts notifications in Alertmanager's format."""

    timeout = 30

    def do_POST(self) -> None:
        """Write the lines of one notification."""
        for line in lines(json.loads(self.rfile.read(int(self.headers["Content-Length"])))):
            print(line, flush=True)  # noqa: T201 - its log
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write no access log."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", PORT), Webhook).serve_forever()
