"""Which format and which encoding an answer has, by what the client accepts."""

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
        (CHROMIUM, TEXT, "a browser shows it as text"),
        (PROMETHEUS_2, OPENMETRICS, "it has the largest weight"),
        (PROMETHEUS_3_TEXT_ONLY, NEWER_TEXT, "a scrape_protocols setting without OpenMetrics"),
        ("application/openmetrics-text", OPENMETRICS, "no version asks for ours"),
        ("Application/OpenMetrics-Text; Version=1.0.0", OPENMETRICS, "types have no case"),
        ("application/openmetrics-text;q=0", TEXT, "explicitly not"),
        ("application/openmetrics-text;q=0,*/*", TEXT, "everything but this"),
        ("text/plain;q=0,*/*", OPENMETRICS, "everything but that"),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", TEXT, "the order of the elements means nothing"),
        ("text/plain;q=0.2,application/openmetrics-text;q=0.9", OPENMETRICS, "the order of the elements means nothing"),
        ("application/openmetrics-text;version=9.9.9,text/plain;q=0.1", TEXT, "a version that nobody writes"),
        ("application/openmetrics-text;version=x", TEXT, "no version at all"),
        ("text/*;q=0.3,application/openmetrics-text;q=0.2", TEXT, "a range"),
        ("application/openmetrics-text;q=best", OPENMETRICS, "an unreadable weight is none"),
        ("application/json", TEXT, "nothing that we write: a scraper can report what it got"),
        (";;,=,;q", TEXT, "no header at all"),
    ],
)
def test_metrics_are_written_in_the_format_that_the_client_prefers(accept: str, content_type: str, why: str) -> None:
    assert content_type in select_encoder(accept)[1], why


@pytest.mark.parametrize(
    ("accept_encoding", "is_gzip", "why"),
    [
        ("gzip", True, "Prometheus"),
        ("gzip, deflate, br, zstd", True, "a browser"),
        ("deflate, GZIP ;q=0.5", True, "encodings have no case"),
        ("x-gzip", True, "its older name"),
        ("*", True, "any"),
        ("gzip;q=0", False, "explicitly not"),
        ("gzip; q=0.000", False, "explicitly not"),
        ("gzip;q=0, *", False, "any but this"),
        ("identity", False, "as it is"),
        ("identity;q=1, gzip;q=0.5", False, "rather as it is"),
        ("identity;q=0.5, gzip;q=1", True, "rather compressed"),
        ("*;q=0", False, "nothing"),
        ("br", False, "another"),
        ("", False, "nothing said"),
    ],
)
def test_an_answer_is_compressed_only_for_a_client_that_wants_it(accept_encoding: str, is_gzip: bool, why: str) -> None:
    """`gzip;q=0` got gzip: a client that cannot read it says so like this."""
    assert accepts_gzip(accept_encoding) == is_gzip, why


@given(st.text(), st.text(alphabet=",;=q*/.01 ge"))
def test_any_header_has_an_answer(strange: str, nearly_right: str) -> None:
    for header in (strange, nearly_right):
        assert select_encoder(header)[1].startswith(("text/plain", "application/openmetrics-text"))
        accepts_gzip(header)


def test_the_examples_hold() -> None:
    assert doctest.testmod(streaming.http.negotiation).failed == 0
