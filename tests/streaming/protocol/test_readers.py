"""Property tests of the generated readers, for every message in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.protocol import UndecodableRecord
from streaming.protocol.readers import compile_reader, reader_source
from streaming.protocol.schema import ArrayOf, Field, Struct
from tests.bench.encoder import encode
from tests.streaming.protocol.strategies import MESSAGES, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from streaming.protocol.schema import Message

    Written: TypeAlias = tuple[Message, int, dict[str, Any], bytes]

READERS = {(message.name, version): compile_reader(message, version) for message, version in MESSAGES}


@st.composite
def written_messages(draw: Callable[..., Any]) -> Written:
    """Draw a message, its version, its fields and their bytes."""
    message, version = draw(st.sampled_from(MESSAGES))
    fields = draw(fields_of(Struct(message.fields), version))
    return message, version, fields, encode(message, version, fields)


def _default(field: Field) -> object:
    if isinstance(field.type, Struct):
        return {one.name: _default(one) for one in field.type.fields}
    if field.default not in (None, ()):
        return field.default
    return [] if isinstance(field.type, ArrayOf) else 0


def _without_tagged_defaults(layout: Struct, fields: dict[str, Any]) -> dict[str, Any]:
    shown = {}
    for field in layout.fields:
        if field.name not in fields or (field.tag is not None and fields[field.name] == _default(field)):
            continue
        shown[field.name] = _shown(field.type, fields[field.name])
    return shown


def _shown(layout: object, value: Any) -> Any:  # noqa: ANN401 - a value of any type
    if value is None:
        return None
    if isinstance(layout, Struct):
        return _without_tagged_defaults(layout, value)
    return [_shown(layout.element, one) for one in value] if isinstance(layout, ArrayOf) else value


@given(written_messages())
def test_a_written_message_is_read_back(written: Written) -> None:
    """Tagged fields with their default value are left out, as in Kafka's JSON converters."""
    message, version, fields, raw = written
    assert READERS[message.name, version](raw, 0) == _without_tagged_defaults(Struct(message.fields), fields)


@given(written_messages(), st.binary(min_size=1, max_size=4), st.binary(max_size=3))
def test_a_reader_starts_at_its_offset_and_ignores_later_bytes(written: Written, behind: bytes, before: bytes) -> None:
    message, version, _, raw = written
    read = READERS[message.name, version]
    assert read(before + raw + behind, len(before)) == read(raw, 0)


@given(written_messages(), st.data())
def test_a_truncated_message_is_refused_with_the_field_at_which_reading_stopped(
    written: Written, data: st.DataObject
) -> None:
    """Truncation is always an error. A truncated array may be refused before its first element."""
    message, version, _, raw = written
    end = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(UndecodableRecord) as caught:
        READERS[message.name, version](raw[:end], 0)
    assert caught.value.reason in {"truncated", "array_too_long"}
    assert caught.value.field


@given(st.sampled_from(MESSAGES), st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(message_and_version: tuple[Message, int], raw: bytes) -> None:
    """A reader raises no other exception for any bytes, because the input is hostile."""
    message, version = message_and_version
    try:
        fields = READERS[message.name, version](raw, 0)
    except UndecodableRecord as refusal:
        assert refusal.field  # noqa: PT017 - without a refusal the test returns
    else:
        assert set(fields) <= {field.name for field in message.fields}


@pytest.mark.parametrize(("message", "version"), MESSAGES, ids=lambda part: getattr(part, "name", part))
def test_the_python_code_of_a_reader_names_each_field_of_its_version(message: Message, version: int) -> None:
    source = reader_source(message, version)
    present = [field.name for field in message.fields if field.since <= version <= field.until]
    absent = [field.name for field in message.fields if not field.since <= version <= field.until]
    assert all(f"'{name}'" in source for name in present)
    assert not any(f"'{name}'" in source for name in absent)
