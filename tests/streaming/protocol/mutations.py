"""Damage records with a seed: flip bits, cut or splice bytes, insert edge values, or invent bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

EDGES = (
    b"\xff\xff\xff\xff",  # -1: a null length, the greatest unsigned int
    b"\x7f\xff\xff\xff",  # the greatest int32: longer than any record
    b"\x80\x00\x00\x00",  # the least int32
    b"\xff\xff",
    b"\x80\x00",
    b"\x00",
    b"\x01\x00\x00",  # one tagged field: tag 0, size 0
    b"\x01\x07\x02ab",  # one unknown tagged field
    b"\x02\x00\x01\x00\x00\x01\x00",  # tag 0 twice
    b"\x01\x09\xff\xff\xff\xff\x0f",  # an unknown tagged field of size -1
    b"\x80\x80\x80\x80\x08",  # the varint of the least int32
    b"\xff\xff\xff\xff\x0f",  # the varint of -1
    b"\xff\xff\xff\xff\x7f",  # the varint of -1 with bits 32 to 34 set
    b"\x81\x80\x80\x80\x00",  # an overlong varint of 1
    b"\x80\x80\x80\x80\x80\x01",  # a varint of six bytes
    b"\xed\xa0\x80",  # an encoded surrogate
    b"\xf0\x9f\xa6",  # a truncated character
)


def _flip(random: Random, raw: bytes, _other: bytes) -> bytes:
    mutable = bytearray(raw)
    for _ in range(random.randint(1, 4)):
        mutable[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    return bytes(mutable)


def _cut(random: Random, raw: bytes, _other: bytes) -> bytes:
    return raw[: random.randrange(len(raw))]


def _remove(random: Random, raw: bytes, _other: bytes) -> bytes:
    start = random.randrange(len(raw))
    return raw[:start] + raw[start + random.randint(1, 8) :]


def _insert_edge(random: Random, raw: bytes, _other: bytes) -> bytes:
    start = random.randrange(len(raw) + 1)
    return raw[:start] + random.choice(EDGES) + raw[start:]


def _overwrite_by_edge(random: Random, raw: bytes, _other: bytes) -> bytes:
    edge = random.choice(EDGES)
    start = random.randrange(len(raw))
    return raw[:start] + edge + raw[start + len(edge) :]


def _replace_tail_by_edge(random: Random, raw: bytes, _other: bytes) -> bytes:
    return raw[: -random.randint(1, 3)] + random.choice(EDGES)  # the tagged fields of most values are at the end


def _splice(random: Random, raw: bytes, other: bytes) -> bytes:
    return raw[: random.randrange(len(raw))] + other[random.randrange(len(other)) :]


def _renumber(random: Random, raw: bytes, _other: bytes) -> bytes:
    return random.randint(-2, 26).to_bytes(2, "big", signed=True) + raw[2:]


def _invent(random: Random, raw: bytes, _other: bytes) -> bytes:
    return raw[:2] + random.randbytes(random.randint(0, 60))


_KINDS = (_flip, _cut, _remove, _insert_edge, _overwrite_by_edge, _replace_tail_by_edge, _splice, _renumber, _invent)


def mutate(random: Random, raw: bytes, other: bytes) -> bytes:
    """Return ``raw`` with one or two damages. Bytes of ``other`` can be spliced into it."""
    for _ in range(random.choice((1, 1, 2))):
        if raw and other:
            raw = random.choice(_KINDS)(random, raw, other)
    return raw


def mutate_record(random: Random, records: Sequence[tuple[bytes, bytes | None]]) -> tuple[bytes, bytes | None]:
    """Return one of the records with a damaged value, a damaged key, or both."""
    (key, value), (other_key, other_value) = random.choice(records), random.choice(records)
    if value is None or random.random() < 0.2:
        key = mutate(random, key, other_key)
    if value is not None and random.random() < 0.9:
        value = mutate(random, value, other_value or other_key)
    return key, value
