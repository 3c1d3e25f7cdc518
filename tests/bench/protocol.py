"""Measures the speed of the decoder and compares it with targets: ``python -m tests.bench.protocol FILE``.

FILE contains JSON lines with base64 ``key`` and ``value``, gzipped or not, for example the sample of the decoder's
tests. The result is the best of several rounds over the records in memory, on one core.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from base64 import b64decode
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from streaming.protocol.classic import group_metadata
from streaming.protocol.records import RecordType, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

RawRecord: TypeAlias = "tuple[bytes, bytes | None]"

ROUNDS: Final = 5
MIN_ROUND_SECONDS: Final = 0.1


def read_records(path: Path) -> list[RawRecord]:
    """Return the records of a file of JSON lines."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    lines = [json.loads(line) for line in text.removesuffix(b"\n").split(b"\n")]
    return [(b64decode(line["key"]), line["value"] and b64decode(line["value"])) for line in lines]


def records_per_second(records: Sequence[RawRecord], read: Callable[[bytes, bytes | None], object]) -> float:
    """Return the rate of the fastest round."""
    repeats = 1
    while _time_repeats(records, read, repeats) < MIN_ROUND_SECONDS:
        repeats *= 2
    seconds = min(_time_repeats(records, read, repeats) for _ in range(ROUNDS))
    return len(records) * repeats / seconds


def _time_repeats(records: Sequence[RawRecord], read: Callable[[bytes, bytes | None], object], repeats: int) -> float:
    started = perf_counter()
    for _ in range(repeats):
        for key, value in records:
            read(key, value)
    return perf_counter() - started


def _decode_group_metadata(key: bytes, value: bytes | None) -> object:
    return group_metadata(decode(key, value))


def _is_classic(record: RawRecord) -> bool:
    return record[0][:2] == RecordType.GROUP_METADATA.to_bytes(2, "big") and record[1] is not None


def _is_commit(record: RawRecord) -> bool:
    return record[0][:2] <= RecordType.OFFSET_COMMIT.to_bytes(2, "big")


def figures(records: Sequence[RawRecord]) -> Iterator[str]:
    """Yield one line per kind of record, with records per second on one core and the target."""
    classic = [record for record in records if _is_classic(record)]
    commits = [record for record in records if _is_commit(record)]
    others = [record for record in records if not _is_classic(record) and not _is_commit(record)]
    valued = [record for record in others if record[1] is not None]
    kinds = (
        ("classic group metadata, with the embedded protocol", classic, _decode_group_metadata, 25_000),
        ("other records, with tombstones", others, decode, 50_000),
        ("other records, without tombstones", valued, decode, 50_000),
        ("offset commits, one by one", commits, decode, 50_000),
    )
    for name, selected, read, target in kinds:
        rate = records_per_second(selected, read)
        yield f"{name:50} {len(selected):5} records {rate:10,.0f}/s   target {target:7,}/s   {rate / target:4.1f} x"


def main() -> None:
    """Print the figures of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    for line in figures(read_records(parser.parse_args().file)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
