"""Tests that primitive types are decoded as in Java."""

from __future__ import annotations

import hashlib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.protocol import UndecodableRecord
from streaming.protocol.primitives import JAVA_UTF8_ERRORS, compact_length, unsigned_varint, uuid_text
from tests.bench.encoder import varint
from tests.streaming.protocol.records import golden_lines


def test_malformed_utf8_is_replaced_as_in_java() -> None:
    """All 406,900 sequences of one to four of 25 edge bytes are compared with the digest of Java's results."""
    (golden,) = golden_lines("utf8")
    edges = bytes.fromhex(golden["edges"])
    digest = hashlib.sha256()
    for length in range(1, 5):
        for sequence in product(edges, repeat=length):
            digest.update(str(bytes(sequence), "utf-8", JAVA_UTF8_ERRORS).encode() + b"\n")
    assert digest.hexdigest() == golden["sha256"]


@given(st.text())
def test_well_formed_text_is_unchanged(text: str) -> None:
    assert str(text.encode(), "utf-8", JAVA_UTF8_ERRORS) == text


def test_the_error_handler_is_only_for_decoding() -> None:
    with pytest.raises(UnicodeEncodeError):
        "\ud800".encode("utf-8", JAVA_UTF8_ERRORS)


@given(st.integers(0, 2**31 - 1), st.binary(max_size=3))
def test_a_varint_is_decoded_and_later_bytes_are_left(value: int, rest: bytes) -> None:
    encoded = varint(value)
    assert unsigned_varint(encoded + rest, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("encoded", "value", "why"),
    [
        ("ffffffff0f", -1, "bit 31 is the sign"),
        ("8080808008", -0x80000000, "the least int"),
        ("ffffffff7f", -1, "bits 32 to 34 are dropped"),
        ("8180808000", 1, "an overlong form is accepted"),
        ("8000", 0, "an overlong zero"),
    ],
)
def test_a_varint_is_a_java_int(encoded: str, value: int, why: str) -> None:
    raw = bytes.fromhex(encoded)
    assert unsigned_varint(raw, 0) == (value, len(raw)), why


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(UndecodableRecord, match="bad_varint"):
        unsigned_varint(bytes.fromhex("808080808001"), 0)


def test_the_smallest_length_minus_one_wraps_to_the_greatest_length() -> None:
    """Java computes ``readUnsignedVarint() - 1``. The result is not null but a length greater than any record."""
    assert compact_length(bytes.fromhex("8080808008"), 0)[0] - 1 == 2**31 - 1


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (bytes(16), "AAAAAAAAAAAAAAAAAAAAAA"),
        (bytes(15) + b"\x01", "AAAAAAAAAAAAAAAAAAAAAQ"),
        (b"\xff" * 16, "_____________________w"),
        (b"\xfb\xef\xbe" * 5 + b"\xfb", "----" * 5 + "-w"),
    ],
)
def test_a_uuid_is_url_safe_base64_without_padding(raw: bytes, text: str) -> None:
    assert uuid_text(raw) == text
