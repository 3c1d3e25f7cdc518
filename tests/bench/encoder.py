"""Encodes records of `__consumer_offsets` from the layouts of the decoder.

Only the benchmark and the tests write such records. The code is simple and slow.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any

from streaming.protocol.schema import ArrayOf, Field, Message, RecordLayout, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDTHS = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}


def varint(value: int) -> bytes:
    """Return an unsigned varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def int16(number: int) -> bytes:
    """Return a version or record type as two bytes."""
    return number.to_bytes(2, "big", signed=True)


def record_key(layout: RecordLayout, **fields: object) -> bytes:
    r"""Return a key with its record type.

    >>> from streaming.protocol.layouts import GROUP_METADATA
    >>> record_key(GROUP_METADATA, group="g")
    b'\x00\x02\x00\x01g'
    """
    return int16(layout.key_type) + encode(layout.key, 0, fields)


def record_value(layout: RecordLayout, version: int, /, **fields: object) -> bytes:
    """Return a value with its version."""
    return versioned(layout.value, version, fields)


def versioned(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return a message with its version in front, as in record values and member subscriptions."""
    return int16(version) + encode(message, version, fields)


def encode(message: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message. Tagged fields that are absent from ``fields`` are not written."""
    return _Encoder(version, flexible=version >= message.flexible_since).struct(Struct(message.fields), fields)


class _Encoder:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def struct(self, layout: Struct, fields: Mapping[str, Any]) -> bytes:
        view = [field for field in layout.fields if field.since <= self.version <= field.until]
        mandatory = b"".join(self._field(field, fields[field.name]) for field in view if field.tag is None)
        tagged = [field for field in view if field.tag is not None and field.name in fields]
        return mandatory + (self._tag_section(tagged, fields) if self.flexible else b"")

    def _tag_section(self, tagged: list[Field], fields: Mapping[str, Any]) -> bytes:
        section = varint(len(tagged))
        for field in tagged:
            encoded = self._field(field, fields[field.name])
            section += varint(field.tag or 0) + varint(len(encoded)) + encoded
        return section

    def _field(self, field: Field, value: Any) -> bytes:  # noqa: ANN401 - a value of any type
        if isinstance(field.type, Struct) and field.nullable:
            null, view = (b"\xff", b"\x01") if field.tag is None else (b"\x00", b"\x01")
            return null if value is None else view + self.struct(field.type, value)
        return self._value(field.type, value)

    def _value(self, layout: Any, value: Any) -> bytes:  # noqa: ANN401 - a value of any type
        if isinstance(layout, Struct):
            return self.struct(layout, value)
        if isinstance(layout, ArrayOf):
            elements = b"" if value is None else b"".join(self._value(layout.element, one) for one in value)
            return self._length(4, None if value is None else len(value)) + elements
        if layout in WIDTHS:
            return int(value).to_bytes(WIDTHS[layout], "big", signed=layout != "uint16")
        if layout == "uuid":
            return urlsafe_b64decode(value + "==")
        raw = value.encode() if isinstance(value, str) else value
        return self._length(2 if layout == "string" else 4, None if raw is None else len(raw)) + (raw or b"")

    def _length(self, width: int, length: int | None) -> bytes:
        if self.flexible:
            return varint(0 if length is None else length + 1)
        return (-1 if length is None else length).to_bytes(width, "big", signed=True)
