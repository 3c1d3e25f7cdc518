"""Reads the primitive types of Kafka's wire format that standard Python functions decode differently from Java.

Source: ``org.apache.kafka.common.utils.ByteUtils``, ``common.Uuid``, and the UTF-8 decoder of ``java.lang.String``.
"""

from __future__ import annotations

import codecs
from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import Final

from streaming.protocol.errors import BAD_VARINT, UndecodableRecord

JAVA_UTF8_ERRORS: Final = "kafka-java-utf8"
"""Name of the codec error handler that replaces malformed UTF-8 as Java's ``new String(bytes, UTF_8)`` does."""

_SURROGATE_LEAD: Final = 0xED


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Replace one malformed sequence by U+FFFD, and return the position after it.

    For an encoded surrogate (ED A0..BF xx), Python writes three U+FFFD, but Java writes only one.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    raw, start = error.object, error.start
    is_surrogate = raw[start] == _SURROGATE_LEAD and raw[start + 1 : start + 2] >= b"\xa0" and raw[start + 1] < 0xC0
    if not is_surrogate:
        return "\ufffd", error.end
    third = raw[start + 2 : start + 3]
    return "\ufffd", start + 2 + (b"\x80" <= third < b"\xc0")


codecs.register_error(JAVA_UTF8_ERRORS, _replace_as_java)


def unsigned_varint(raw: bytes, position: int) -> tuple[int, int]:
    """Read a varint as a Java int, and return the position after it. Overlong forms are valid.

    Bits 32 to 34 are ignored. Bit 31 is the sign. Raises IndexError if the bytes end early, and UndecodableRecord if
    the varint has more than five bytes.

    >>> unsigned_varint(bytes([0x96, 0x01]), 0)
    (150, 2)
    """
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value if value < 0x80000000 else value - 0x100000000), position
    raise UndecodableRecord(BAD_VARINT)


def compact_length(raw: bytes, position: int) -> tuple[int, int]:
    """Read the "length plus one" of compact strings, bytes and arrays. A result of 0 or less means null.

    Java computes ``readUnsignedVarint() - 1``. For the smallest int, Java's subtraction overflows, so this function
    returns the greatest int plus one.

    >>> compact_length(bytes([0x80, 0x80, 0x80, 0x80, 0x08]), 0)
    (2147483648, 5)
    """
    value, position = unsigned_varint(raw, position)
    return (value if value != -0x80000000 else 0x80000000), position


@lru_cache(maxsize=4096)  # the same few topic ids occur in many records
def uuid_text(raw: bytes) -> str:
    """Return the 16 bytes of a Kafka Uuid in the text form that Kafka prints: URL-safe base64 without padding.

    >>> uuid_text(bytes(16))
    'AAAAAAAAAAAAAAAAAAAAAA'
    """
    return urlsafe_b64encode(raw)[:22].decode("ascii")


ZERO_UUID: Final = uuid_text(bytes(16))
