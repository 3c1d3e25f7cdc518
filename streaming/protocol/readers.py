"""Generates a reader function for each version of a layout, as Python source that is compiled at import.

A reader unpacks neighbouring fields of fixed size together, and reads structs without a function call. It accepts and
refuses the same bytes as Kafka's generated ``read(Readable, short)`` (``MessageDataGenerator``). It returns a dict with
the fields of Kafka's generated JSON converter, in field order, without tagged fields that have their default value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from types import TracebackType
from typing import Any, Final, TypeAlias

from streaming.protocol.errors import (
    ARRAY_TOO_LONG,
    NEGATIVE_SIZE,
    NULL_FIELD,
    STRING_TOO_LONG,
    TRUNCATED,
    UndecodableRecord,
)
from streaming.protocol.primitives import JAVA_UTF8_ERRORS, compact_length, unsigned_varint, uuid_text
from streaming.protocol.schema import ArrayOf, Field, Message, Scalar, Struct

Reader: TypeAlias = Callable[[bytes, int], dict[str, Any]]
Place: TypeAlias = tuple[tuple[str, int], ...]

_FORMATS: Mapping[str, str] = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "uuid": "16s"}
_MAX_STRING_BYTES: Final = 0x7FFF


class _ArrayUnpackers(dict[int, Callable[[bytes, int], tuple[int, ...]]]):
    """Unpackers of integer arrays by length. Only unpackers of fewer than 256 elements are stored."""

    def __init__(self, element_format: str) -> None:
        super().__init__()
        self._format = element_format
        self.update((count, self.__missing__(count)) for count in range(256))

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[int, ...]]:
        return struct.Struct(f">{count}{self._format}").unpack_from


_ARRAY_UNPACKERS: Final = {"int16": _ArrayUnpackers("h"), "int32": _ArrayUnpackers("i")}


class _Writer:
    """Generates the Python source of one reader function.

    For each generated line, `places` contains the paths and sizes of the fields that the line reads.

    Variables in the source: ``b`` contains the bytes, and ``n`` is the number of bytes. ``p`` is the position, and
    ``q`` is a length or an end position. ``t`` is the number of tags, ``g`` is a tag, and ``s`` is the size of a tagged
    field. Variables with a number in their name: ``f`` is a field, ``d`` is a dict, and ``i`` is an array index. ``u``
    is True if a struct had unknown tags.
    """

    def __init__(self, message: Message, version: int) -> None:
        self._version = version
        self._flexible = version >= message.flexible_since
        self._depth = 0
        self._names = 0
        self._place: Place = (("", 0),)
        self.lines: list[str] = []
        self.places: list[Place] = []
        with self._block("def read(b, p):"):
            self._line("n = len(b)")
            with self._block("try:"):
                self._line(f"return {self._struct(Struct(message.fields), '')}")
            with self._block("except (IndexError, struct_error, Undecodable) as error:"):
                self._line("raise locate(error, error.__traceback__) from None")

    def _line(self, *texts: str) -> None:
        for text in texts:
            self.lines.append("    " * self._depth + text)
            self.places.append(self._place)

    @contextmanager
    def _block(self, header: str) -> Iterator[None]:
        self._line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _refuse_if(self, condition: str, reason: str) -> None:
        self._line(f"if {condition}: raise Undecodable({reason!r})")

    # Structs

    def _struct(self, layout: Struct, parent: str, unknown: str = "") -> str:
        """Generate the code that decodes a struct. Return the Python expression that creates the dict of the struct.

        ``unknown`` is the name of the variable that the generated code sets if the struct has unknown tags.
        """
        present = [field for field in layout.fields if field.since <= self._version <= field.until]
        tagged = [field for field in present if field.tag is not None]
        entries: list[str] = []
        mandatory = present[: len(present) - len(tagged)]
        for is_fixed, fields in groupby(mandatory, key=lambda field: field.type in _FORMATS):
            if is_fixed:
                entries += self._fixed_run(list(fields), parent)
            else:
                for field in fields:
                    name = self._name("f")
                    self._value(name, field, parent + field.name)
                    entries.append(f"{field.name!r}: {name}")
        literal = "{" + ", ".join(entries) + "}"
        return self._tag_section(tagged, literal, parent, unknown) if self._flexible else literal

    def _fixed_run(self, run: Sequence[Field], parent: str) -> list[str]:
        """Generate the code that unpacks neighbouring fields of fixed size. Return their entries in the dict."""
        names = [self._name("f") for _ in run]
        formats = [_FORMATS[str(field.type)] for field in run]
        sizes = [struct.calcsize(">" + one) for one in formats]
        self._place = tuple((parent + field.name, size) for field, size in zip(run, sizes, strict=True))
        self._line(f"{', '.join(names)}, = unpack_{''.join(formats)}(b, p)", f"p += {sum(sizes)}")
        texts = [f"uuid_text({name})" if field.type == "uuid" else name for field, name in zip(run, names, strict=True)]
        return [f"{field.name!r}: {text}" for field, text in zip(run, texts, strict=True)]

    def _tag_section(self, tagged: Sequence[Field], literal: str, parent: str, unknown: str) -> str:
        """Generate the code that decodes a struct's tagged fields. Return the expression that creates the struct."""
        self._place = ((parent + "taggedFields", 0),)
        if tagged:
            whole = self._name("d")
            self._line(f"{whole} = {literal}")
        self._line("t = b[p]", "p += 1")
        with self._block("if t:"):
            self._line("if t > 127: t, p = varint(b, p - 1)")
            known = [(field, self._name("f")) for field in tagged]
            for field, name in known:
                self._line(f"{name} = {_default(field)!r}", f"u{name} = False")
            with self._block("for _ in range(t):"):
                self._tagged_fields(known, parent, unknown)
            for field, name in known:
                self._line(f"if {name} != {_default(field)!r} or u{name}: {whole}[{field.name!r}] = {name}")
        return whole if tagged else literal

    def _tagged_fields(self, known: Sequence[tuple[Field, str]], parent: str, unknown: str) -> None:
        section = self._place
        self._line("g, p = varint(b, p)", "s, p = varint(b, p)")
        for field, name in known:
            with self._block(f"if g == {field.tag}:"):
                self._line(f"u{name} = False")
                self._value(name, field, parent + field.name)
                self._line("continue")
        self._place = section
        self._refuse_if("s < 0", NEGATIVE_SIZE)
        self._line("p += s")
        self._refuse_if("p > n", TRUNCATED)
        if unknown:
            self._line(f"{unknown} = True")

    # Values

    def _value(self, name: str, field: Field, place: str) -> None:
        self._place = ((place, 0),)
        if isinstance(field.type, Struct):
            self._struct_value(name, field, field.type, place)
        elif isinstance(field.type, ArrayOf):
            with self._unless_null(name, self._length(4), nullable=field.nullable):
                self._array(name, field.type.element, place)
        elif field.type in _FORMATS:
            (entry,) = self._fixed_run([field], place[: -len(field.name)])
            self._line(f"{name} = {entry.partition(': ')[2]}")
        else:
            self._blob(name, field.type, nullable=field.nullable)

    def _struct_value(self, name: str, field: Field, layout: Struct, place: str) -> None:
        """Generate the code that decodes a field of type struct.

        A nullable struct without a tag starts with a signed byte. A nullable struct with a tag starts with a varint.
        """
        null = "q > 127" if field.tag is None else "q < 1"
        if field.nullable:
            self._line(*(("q = b[p]", "p += 1") if field.tag is None else ("q, p = varint(b, p)",)))
        with self._unless_null(name, null, nullable=True) if field.nullable else nullcontext():
            unknown = f"u{name}" if field.tag is not None else ""
            self._line(f"{name} = {self._struct(layout, place + '.', unknown)}")

    @contextmanager
    def _unless_null(self, name: str, null: str, *, nullable: bool) -> Iterator[None]:
        if not nullable:
            self._refuse_if(null, NULL_FIELD)
            yield
            return
        self._line(f"if {null}: {name} = None")
        with self._block("else:"):
            yield

    def _length(self, prefix_bytes: int) -> str:
        """Generate the code that assigns a length to ``q``. Return an expression that is true if the value is null."""
        if self._flexible:
            self._line("q = b[p]", "p += 1", "if q > 127: q, p = compact_length(b, p - 1)", "q -= 1")
            return "q < 0"
        if prefix_bytes == 2:
            self._line("q = b[p] << 8 | b[p + 1]", "p += 2")
            return f"q > {_MAX_STRING_BYTES}"
        self._line("q, = unpack_i(b, p)", "p += 4")
        return "q < 0"

    def _blob(self, name: str, blob_type: Scalar, *, nullable: bool) -> None:
        is_text = blob_type == "string"
        with self._unless_null(name, self._length(2 if is_text else 4), nullable=nullable):
            if is_text and self._flexible:
                self._refuse_if(f"q > {_MAX_STRING_BYTES}", STRING_TOO_LONG)
            self._line("q += p")
            self._refuse_if("q > n", TRUNCATED)
            self._line(
                f"{name} = str(b[p:q], 'utf-8', {JAVA_UTF8_ERRORS!r})" if is_text else f"{name} = b[p:q]", "p = q"
            )

    def _array(self, name: str, element: Scalar | Struct, place: str) -> None:
        """Generate the code that decodes an array. Like Kafka, the code refuses more elements than remaining bytes."""
        self._refuse_if("q > n - p", ARRAY_TOO_LONG)
        if isinstance(element, str) and element in _ARRAY_UNPACKERS:
            size = struct.calcsize(">" + _FORMATS[element])
            self._line(f"{name} = list({element}_array[q](b, p))", f"p += q * {size}")
            return
        index = self._name("i")
        self._line(f"{name} = []")
        with self._block(f"for {index} in range(q):"):
            self._element(name, element, f"{place}[{{{index}}}]")

    def _element(self, name: str, element: Scalar | Struct, place: str) -> None:
        self._place = ((place, 0),)
        if isinstance(element, Struct):
            self._line(f"{name}.append({self._struct(element, place + '.')})")
        else:
            one = self._name("f")
            self._blob(one, element, nullable=False)
            self._line(f"{name}.append({one})")


def _zero(field_type: Scalar | ArrayOf | Struct) -> Any:  # noqa: ANN401 - the value of a field of any type
    """Return the initial value that Kafka's Java class gives to a field without a default."""
    if isinstance(field_type, Struct):
        return {field.name: _zero(field.type) for field in field_type.fields}
    return [] if isinstance(field_type, ArrayOf) else {"string": "", "bytes": b""}.get(field_type, 0)


def _default(field: Field) -> Any:  # noqa: ANN401 - the value of a field of any type
    return _zero(field.type) if field.default in (None, ()) else field.default


def _locator(places: Sequence[Place]) -> Callable[[Exception, TracebackType], UndecodableRecord]:
    """Return the function that converts a reader's exception to UndecodableRecord with the path of the field.

    The function finds the field by the source line that raised the exception, the reader's position and the array
    indexes. It is called only for invalid bytes.
    """

    def locate(error: Exception, traceback: TracebackType) -> UndecodableRecord:
        local_names = traceback.tb_frame.f_locals
        position, field = local_names["p"], ""
        for path, size in places[traceback.tb_lineno - 1]:
            field = path.format_map(local_names)
            position += size
            if position > local_names["n"]:
                break
        return UndecodableRecord(error.reason if isinstance(error, UndecodableRecord) else TRUNCATED, field)

    return locate


def reader_source(message: Message, version: int) -> str:
    """Return the Python source of a reader, for tests and for debugging."""
    return "\n".join(_Writer(message, version).lines)


def compile_reader(message: Message, version: int) -> Reader:
    """Return the reader of one version of a message: ``read(raw, position) -> fields``.

    The reader raises UndecodableRecord with the path of the field that it could not read. Additional bytes after the
    message are ignored.

    >>> from streaming.protocol.layouts import OFFSET_COMMIT
    >>> read = compile_reader(OFFSET_COMMIT.key, 0)
    >>> read(bytes.fromhex("0001 67 0001 74 00000007"), 0)
    {'group': 'g', 'topic': 't', 'partition': 7}
    >>> read(bytes.fromhex("0001 67 0001 74 0000"), 0)
    Traceback (most recent call last):
    ...
    streaming.protocol.errors.UndecodableRecord: truncated at partition
    """
    writer = _Writer(message, version)
    source = "\n".join(writer.lines)
    # For example, `unpack_iq` reads an int32 and an int64.
    unpackers = {word for word in source.replace("(", " ").split() if word.startswith("unpack_")}
    names: dict[str, Any] = {
        "Undecodable": UndecodableRecord,
        "compact_length": compact_length,
        "int16_array": _ARRAY_UNPACKERS["int16"],
        "int32_array": _ARRAY_UNPACKERS["int32"],
        "locate": _locator(writer.places),
        "struct_error": struct.error,
        "uuid_text": uuid_text,
        "varint": unsigned_varint,
        **{name: struct.Struct(">" + name.removeprefix("unpack_")).unpack_from for name in unpackers},
    }
    code = compile(source, f"<{message.name} v{version}>", "exec")
    exec(code, names)  # noqa: S102 - the source comes only from the layouts of this package, never from records
    read: Reader = names["read"]
    return read


def compile_readers(message: Message) -> tuple[Reader, ...]:
    """Return the readers of all versions of a message. The index of a reader is its version."""
    return tuple(compile_reader(message, version) for version in range(message.highest_version + 1))
