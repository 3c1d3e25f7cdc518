"""Tests of the format and the encoding of a response, by the headers of the client."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.http.negotiation
from streaming.http.negotiation import accepts_gzip, select_encoder

TEXT, OPENMETRICS, NEWER_TEXT = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0", "1.0.0"
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROMETHEUS_3_TEXT_ONLY = "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "content_type", "why"),
    [
        ("", TEXT, "no header"),
        ("*/*", TEXT, "curl"),
        (CHROMIUM, TEXT, "a browser shows the text format"),
        (PROMETHEUS_2, OPENMETRICS, "OpenMetrics has the largest weight"),
        (PROMETHEUS_3_TEXT_ONLY, NEWER_TEXT, "a scrape_protocols setting without OpenMetrics"),
        ("application/openmetrics-text", OPENMETRICS, "without a version, the supported version is used"),
        ("Application/OpenMetrics-Text; Version=1.0.0", OPENMETRICS, "types are case-insensitive"),
        ("application/openmetrics-text;q=0", TEXT, "the client refuses OpenMetrics"),
        ("application/openmetrics-text;q=0,*/*", TEXT, "every type except OpenMetrics"),
        ("text/plain;q=0,*/*", OPENMETRICS, "every type except text"),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", TEXT, "only weights count, not the order"),
        ("text/plain;q=0.2,application/openmetrics-text;q=0.9", OPENMETRICS, "only weights count, not the order"),
        ("application/openmetrics-text;version=9.9.9,text/plain;q=0.1", TEXT, "a version that does not exist"),
        ("application/openmetrics-text;version=x", TEXT, "not a version"),
        ("text/*;q=0.3,application/openmetrics-text;q=0.2", TEXT, "a media range with the larger weight"),
        ("application/openmetrics-text;q=best", OPENMETRICS, "an invalid weight is ignored"),
        ("application/json", TEXT, "no supported type: the scraper can report the content type"),
        (";;,=,;q", TEXT, "an invalid header"),
    ],
)
def test_metrics_are_written_in_the_format_that_the_client_prefers(accept: str, content_type: str, why: str) -> None:
    assert content_type in select_encoder(accept)[1], why


@pytest.mark.parametrize(
    ("accept_encoding", "is_gzip", "why"),
    [
        ("gzip", True, "Prometheus"),
        ("gzip, deflate, br, zstd", True, "a browser"),
        ("deflate, GZIP ;q=0.5", True, "encodings are case-insensitive"),
        ("x-gzip", True, "the older name of gzip"),
        ("*", True, "any encoding"),
        ("gzip;q=0", False, "the client refuses gzip"),
        ("gzip; q=0.000", False, "the client refuses gzip"),
        ("gzip;q=0, *", False, "any encoding except gzip"),
        ("identity", False, "no compression"),
        ("identity;q=1, gzip;q=0.5", False, "no compression is preferred"),
        ("identity;q=0.5, gzip;q=1", True, "gzip is preferred"),
        ("*;q=0", False, "no encoding is accepted"),
        ("br", False, "a different encoding"),
        ("", False, "an empty header"),
    ],
)
def test_an_answer_is_compressed_only_for_a_client_that_wants_it(accept_encoding: str, is_gzip: bool, why: str) -> None:
    """A client that cannot read gzip sends `gzip;q=0`. It once received gzip."""
    assert accepts_gzip(accept_encoding) == is_gzip, why


@given(st.text(), st.text(alphabet=",;=q*/.01 ge"))
def test_any_header_has_an_answer(strange: str, nearly_right: str) -> None:
    for header in (strange, nearly_right):
        assert select_encoder(header)[1].startswith(("text/plain", "application/openmetrics-text"))
        accepts_gzip(header)


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.http.negotiation).failed == 0
