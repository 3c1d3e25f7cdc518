"""Defines the types that describe a layout: messages, fields and their versions, as in Kafka's message definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = Literal["int8", "int16", "uint16", "int32", "int64", "uuid", "string", "bytes"]


@dataclass(frozen=True, slots=True)
class Struct:
    """A sequence of fields. In flexible versions, the tagged fields come last."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array of elements of one type. Elements are never null."""

    element: Scalar | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct. ``since`` and ``until`` are the first and the last version that have the field.

    ``default`` is the value of a tagged field if the tag is absent. The default of a tagged struct is a struct in which
    all fields are zero, empty or null.
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
    """A message. Since version ``flexible_since``, lengths are compact and structs end with tagged fields."""

    name: str
    fields: tuple[Field, ...]
    highest_version: int = 0
    flexible_since: int = 0x7FFF


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """A record type: Kafka's name, the int16 at the start of its keys, and the layouts of key and value."""

    name: str
    key_type: int
    key: Message
    value: Message
