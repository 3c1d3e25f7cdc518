"""Regenerate two golden files with Kafka's own classes: the worked examples, and the partitions of random keys.

The program needs a JDK 17 and a folder with the jars of ``org.apache.kafka:kafka_2.13:4.2.0`` and its dependencies:

    python -m tests.assignors.oracle.regenerate JARS
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from tests.assignors.golden import GOLDEN
from tests.assignors.test_key_partitioner import PARTITION_COUNTS
from tests.assignors.test_worked_examples import EXAMPLES

RANDOM_KEYS = 10_000
LONGEST_KEY_BYTES = 24


def oracle(jars: Path, question: str, inputs: Iterable[object] = ()) -> list[Any]:
    """Return the oracle's answer to each input."""
    program = str(Path(__file__).with_name("StrategyOracle.java"))
    lines = "".join(f"{json.dumps(line)}\n" for line in inputs)
    command = ["java", "-cp", f"{jars}/*", program, question]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def random_keys() -> list[str]:
    """Return different keys of 0 to 24 random bytes as base64. So every remainder of four bytes occurs."""
    random = Random(42)
    keys: dict[str, None] = {}
    while len(keys) < RANDOM_KEYS:
        keys[b64encode(random.randbytes(random.randint(0, LONGEST_KEY_BYTES))).decode()] = None
    return list(keys)


def write(name: str, made_by: dict[str, str], lines: Iterable[object]) -> None:
    """Write a golden file. Its header contains the source and the digest of the other lines."""
    body = [json.dumps(line, separators=(",", ":")) for line in lines]
    digest = hashlib.sha256("\n".join(body).encode()).hexdigest()
    header = {"made_by": "tests/assignors/oracle/regenerate.py", **made_by, "sha256": digest}
    text = "".join(f"{line}\n" for line in [json.dumps(header), *body])
    (GOLDEN / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> None:
    """Write both files."""
    jars = Path(sys.argv[1])
    (made_by,) = oracle(jars, "version")
    scenarios = [example.as_scenario() for example in EXAMPLES]
    assigned = oracle(jars, "assign", scenarios)
    examples = ({**scenario, "kafka": answer} for scenario, answer in zip(scenarios, assigned, strict=True))
    write("worked-examples", made_by, examples)
    keys = random_keys()
    partitions = oracle(jars, "partitions", ({"key": key, "counts": PARTITION_COUNTS} for key in keys))
    write("key-partitions", made_by, zip(keys, partitions, strict=True))


if __name__ == "__main__":
    main()
