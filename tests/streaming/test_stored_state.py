"""Test that the stored state changes only together with its version, and that older versions are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa
import pytest

from streaming.combine.partition_state import LIVE_SCHEMA, PARTITION_CODEC, PartitionSnapshot
from streaming.delta.tables import SCHEMA_VERSION
from streaming.evaluation.group_update import GROUP_CODEC, GroupState
from streaming.evaluation.lag.stored import commit_windows, sampled_offsets
from streaming.group.codec import StateCodec
from streaming.spark.checkpoint import CHECKPOINT_VERSION
from tests.streaming.combine.test_gaps import FIRST, advanced, log_of

UPGRADING = Path(__file__).parents[2] / "docs" / "UPGRADING.md"

CHECKSUMS = {
    (GroupState, 3): "71a7fcdd0b3b4e21",
    (PartitionSnapshot, 3): "901275c384f0caa6",
}
"""A checksum of all fields of the stored types, by version.

If a fixture of the upgrade test has this version, a change needs a new version and a migration. If not, replace the
checksum of the version.
"""


@pytest.mark.parametrize(
    ("stored", "codec", "columns"),
    [
        pytest.param(GroupState, GROUP_CODEC, pa.schema([]), id="group"),
        pytest.param(PartitionSnapshot, PARTITION_CODEC, LIVE_SCHEMA, id="partition of __consumer_offsets"),
    ],
)
def test_a_stored_type_changes_only_together_with_its_version(
    stored: type, codec: StateCodec[Any], columns: pa.Schema
) -> None:
    """A tuple of the partition state once got a third element. Then a checkpoint with an open gap was unreadable."""
    fields = "\n".join([*sorted(set(_fields(stored))), *map(str, columns)])
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
    origin, parts = get_origin(hint), [_name(part) for part in get_args(hint)]
    if origin in {Union, UnionType}:
        return " | ".join(parts)
    return f"{origin.__name__}[{', '.join(parts)}]" if origin else getattr(hint, "__name__", "...")


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
    del stored["gaps"]["ended"]
    for gap in stored["gaps"]["open"].values():
        gap["before"] = gap["before"][:2]
        gap["pending"] = {key: commit[:2] for key, commit in gap["pending"].items()}
        for name in ("changed_offset", "recommitted_records", "is_recommitted_known"):
            del gap[name]
    return msgspec.msgpack.encode(stored)


@pytest.mark.parametrize(
    ("stored", "version"),
    [
        ("the layout of the checkpoint", CHECKPOINT_VERSION),
        ("the state of a group", GROUP_CODEC.version),
        ("the state of a partition", PARTITION_CODEC.version),
        ("samples of offsets", max(sampled_offsets.STORED_VERSION, commit_windows.STORED_VERSION)),
        ("the tables", SCHEMA_VERSION),
    ],
)
def test_the_page_on_upgrades_has_the_present_versions(stored: str, version: int) -> None:
    (row,) = [line for line in UPGRADING.read_text().splitlines() if line.startswith(f"| {stored}")]
    assert row.split(" | ")[1] == str(version)
