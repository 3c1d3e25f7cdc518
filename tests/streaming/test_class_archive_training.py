"""Tests of the creation of class archives. `tests/end_to_end/test_image_steps.py` creates real ones."""

from __future__ import annotations

import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from streaming.class_archive_training import _is_ready


class Ready(BaseHTTPRequestHandler):
    """Answers each request with the status 200."""

    def do_GET(self) -> None:
        """Send the status."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_the_readiness_probe_is_asked_directly_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, `make setup` behind a proxy waited for the whole limit, and the archive contained less."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy")
    monkeypatch.setattr(urllib.request, "_opener", None)  # a new process has not read the proxies yet
    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert _is_ready(server.server_port)
