"""Requests `/metrics` as Prometheus does, and reads single metric families from the response."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.bench.fill import BenchError

_HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Scrape:
    """One response: its text, its duration in seconds, and the time of its arrival (seconds since the epoch)."""

    text: str
    seconds: float
    at_seconds: float

    def by_label(self, family: str, label: str) -> Mapping[str, float]:
        """Return the samples of a gauge, by one label."""
        return {labels[label]: value for labels, value in self._samples(family)}

    def value(self, family: str) -> float | None:
        """Return the only sample of a gauge, or None if it is missing."""
        return next((value for _, value in self._samples(family)), None)

    def _samples(self, family: str) -> Iterator[tuple[Mapping[str, str], float]]:
        # Parse only the lines of this family. Parsing the text of 2,000 groups takes seconds on the measured cores.
        lines = (line for line in self.text.splitlines() if line.startswith((f"{family}{{", f"{family} ")))
        for metric in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in metric.samples:
                yield sample.labels, sample.value


def scrape(port: int) -> Scrape | None:
    """Send one request. Returns None if the port is not open yet. Raises BenchError for an error response."""
    request = Request(f"http://127.0.0.1:{port}/metrics", headers=_HEADERS)
    started = time.monotonic()
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - http, to loopback
            body, encoding = answer.read(), answer.headers.get("Content-Encoding")
    except HTTPError as error:
        raise BenchError(f"/metrics returned {error.code} {error.reason}: see the monitor's log") from error
    except OSError:
        return None
    seconds, at_seconds = time.monotonic() - started, time.time()
    return Scrape((gzip.decompress(body) if encoding == "gzip" else body).decode(), seconds, at_seconds)
