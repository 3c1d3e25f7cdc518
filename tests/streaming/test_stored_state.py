"""Test that the stored state changes only together with its version, and that older versions are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from streaming.combine.partition_state import PARTITION_CODEC, PartitionSnapshot
from streaming.evaluation.group_update import GROUP_CODEC, GroupState
from streaming.group.codec import StateCodec
from tests.streaming.combine.test_gaps import FIRST, advanced, log_of

CHECKSUMS = {
    (GroupState, 1): "",
    (PartitionSnapshot, 2): "",
}
"""A checksum of all fields of the stored types, by version.

If a fixture of the upgrade test has this version, a change needs a new version and a migration. If not, replace the
checksum of the version.
"""


@pytest.mark.parametrize(("stored", "codec"), [(GroupState, GROUP_CODEC), (PartitionSnapshot, PARTITION_CODEC)])
def test_a_stored_type_changes_only_together_with_its_version(stored: type, codec: StateCodec[Any]) -> None:
    """A tuple of the partition state once got a third element. Then each checkpoint with an open gap was unreadable."""
    fields = "\n".join(sorted(set(_fields(stored))))
    assert hashlib.sha256(fields.encode()).hexdigest()[:16] == CHECKSUMS[stored, codec.version], fields


def _fields(kind: Any) -> Iterator[str]:  # noqa: ANN401 - a type or a type expression
    """Yield the fields of a type and of all types that it contains, each with the name of its type.

    A named tuple is stored without names, so the order of its fields counts.
    """
    for part in get_args(kind):
        yield from _fields(part)
    is_tuple = hasattr(kind, "_fields")
    if is_tuple or hasattr(kind, "__struct_fields__"):
        for number, (name, hint) in enumerate(get_type_hints(kind).items()):
            yield f"{kind.__name__}.{number if is_tuple else name}: {_name(hint)}"
            yield from _fields(hint)


def _name(hint: Any) -> str:  # noqa: ANN401 - a type or a type expression
    arguments = ", ".join(map(_name, get_args(hint)))
    return f"{_name(get_origin(hint))}[{arguments}]" if arguments else getattr(hint, "__name__", str(hint))


def test_an_open_gap_of_version_1_closes_with_unknown_recommitted_records() -> None:
    """Version 1 has no committed offsets. The time without commits does not depend on them."""
    before, _ = advanced(PartitionSnapshot(0), log_of([*FIRST, (8, "generation 2"), (19, "commit 0 0")]))
    migrated = PARTITION_CODEC.decode(1, _in_version_1(before))
    records = log_of([*FIRST, (8, "generation 2"), (19, "commit 0 0"), (21, "commit 1 0")])[-1:]
    (expected,), (gap,) = advanced(before, records)[1].gaps, advanced(migrated, records)[1].gaps
    assert expected.recommitted_records == 2
    assert gap == msgspec.structs.replace(expected, recommitted_records=None)


def _in_version_1(snapshot: PartitionSnapshot) -> bytes:
    """Return the bytes that version 1 had for a snapshot."""
    stored = msgspec.msgpack.decode(PARTITION_CODEC.encode(snapshot)[1])
    for gap in stored["gaps"]["open"].values():
        gap["before"] = gap["before"][:2]
        gap["pending"] = {key: commit[:2] for key, commit in gap["pending"].items()}
        for name in ("changed_offset", "recommitted_records", "is_recommitted_known"):
            del gap[name]
    return msgspec.msgpack.encode(stored)
