"""Record files of these tests: the real sample, and the golden results of Kafka's own classes."""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
SAMPLE = HERE / "samples" / "consumer-offsets-records.jsonl.gz"
GOLDEN = HERE / "golden"
KAFKA_VERSION = "4.2.0"


def lines_of(path: Path) -> list[str]:
    """Return the lines of a gzipped file. Only line feeds separate them, because a name can contain U+2028."""
    return gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")


def raw_record(line: Mapping[str, Any]) -> tuple[bytes, bytes | None]:
    """Return key and value of a line with base64 fields."""
    return b64decode(line["key"]), None if line["value"] is None else b64decode(line["value"])


def sample_records() -> list[tuple[bytes, bytes | None]]:
    """Return the records read from a real Kafka 4.2.0 broker."""
    return [raw_record(json.loads(line)) for line in lines_of(SAMPLE)]


def golden_lines(name: str) -> list[Any]:
    """Return the golden lines of a file. A file that was edited by hand fails."""
    first, *lines = lines_of(GOLDEN / f"{name}.jsonl.gz")
    header = json.loads(first)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert header["sha256"] == digest, f"{name} was edited: regenerate it from Kafka's classes"
    assert header["kafka"] == KAFKA_VERSION
    return [json.loads(line) for line in lines]
