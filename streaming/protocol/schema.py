"""How a layout is said: messages of fields, with the versions that have them, as in Kafka's message definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = Literal["int8", "int16", "uint16", "int32", "int64", "uuid", "string", "bytes"]


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields that follow each other; in a flexible version a section of tagged fields ends them."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """Any number of elements of one type; elements are never null."""

    element: Scalar | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    Attributes:
        since, until: the first and last version that has the field (both included).
        tag: its tag where it is a tagged field; ``default`` is then what a reader sees when the tag is absent, and
            what Kafka's JSON leaves out. A tagged struct's default is the struct with each of its fields at zero,
            empty or null.

    """

    name: str
    type: Scalar | ArrayOf | Struct
    since: int = 0
    until: int = 0x7FFF
    nullable: bool = False
    tag: int | None = None
    default: int | str | tuple[()] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A top-level message of the versions 0 to ``highest_version``.

    From ``flexible_since`` on its lengths are compact and its structs end in tagged fields.
    """

    name: str
    fields: tuple[Field, ...]
    highest_version: int = 0
    flexible_since: int = 0x7FFF


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """A record type: Kafka's name for it, the int16 that leads its keys, and the layouts of key and value."""

    name: str
    key_type: int
    key: Message
    value: Message
