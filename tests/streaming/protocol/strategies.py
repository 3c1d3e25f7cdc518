"""Hypothesis strategies for the fields of any message, from its layout."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from streaming.protocol.layouts import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    RECORD_LAYOUTS,
    STICKY_USER_DATA,
)
from streaming.protocol.primitives import uuid_text
from streaming.protocol.schema import ArrayOf, Field, Message, Struct

_TEXT = st.text(max_size=8) | st.integers(120, 135).map(lambda length: "x" * length)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uuid": st.just(bytes(16)).map(uuid_text) | st.binary(min_size=16, max_size=16).map(uuid_text),
    "string": _TEXT,
    "bytes": st.binary(max_size=8),
}

MESSAGES: tuple[tuple[Message, int], ...] = tuple(
    (message, version)
    for message in (
        *(layout.key for layout in RECORD_LAYOUTS),
        *(layout.value for layout in RECORD_LAYOUTS),
        CONSUMER_PROTOCOL_SUBSCRIPTION,
        CONSUMER_PROTOCOL_ASSIGNMENT,
        STICKY_USER_DATA,
    )
    for version in range(message.highest_version + 1)
)
"""Every message in every version."""


def _values(layout: Any, version: int) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a value of any type
    if isinstance(layout, Struct):
        return fields_of(layout, version)
    if isinstance(layout, ArrayOf):
        return st.lists(_values(layout.element, version), max_size=3)
    return _SCALARS[layout]


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _values(field.type, version)
    return st.none() | values if field.nullable else values


def fields_of(layout: Struct, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for a struct's fields. Tagged fields may be absent."""
    present = [field for field in layout.fields if field.since <= version <= field.until]
    return st.fixed_dictionaries(
        {field.name: _field(field, version) for field in present if field.tag is None},
        optional={field.name: _field(field, version) for field in present if field.tag is not None},
    )
