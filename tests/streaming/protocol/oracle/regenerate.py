"""Regenerate the golden files with Kafka's own classes.

The program needs Java 17 and a folder with the jars of ``org.apache.kafka:kafka_2.13:4.2.0`` and its dependencies:

    python -m tests.streaming.protocol.oracle.regenerate JARS

With ``--check SEEDS`` the program writes nothing. For each seed, both decoders read new records and mutations, and
must agree.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from random import Random
from typing import Any

from tests.streaming.protocol.agreement import disagreement
from tests.streaming.protocol.cases import CASES
from tests.streaming.protocol.mutations import mutate, mutate_record
from tests.streaming.protocol.records import GOLDEN, raw_record, sample_records

SEED = 42
EMBEDDED = ("subscription", "assignment", "stickyUserData")


def oracle(jars: Path, *arguments: str, stdin: str = "") -> list[str]:
    """Run the oracle and return its output lines."""
    classpath = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    command = ["java", "-Xmx1g", "-cp", classpath, str(Path(__file__).with_name("KafkaOracle.java")), *arguments]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=True)
    return done.stdout.decode().removesuffix("\n").split("\n")


def base64_record(key: bytes, value: bytes | None) -> str:
    """Return a record as an input line for the oracle."""
    return json.dumps({"key": b64encode(key).decode(), "value": None if value is None else b64encode(value).decode()})


def inputs(jars: Path, seed: int, *, each: int, mutations: int) -> list[str]:
    """Return the real sample, records that Kafka serialised from random fields, and mutations of both."""
    random = Random(seed)
    lines = oracle(jars, "generate", str(seed), str(each))
    made = [json.loads(line) for line in lines]
    records = [raw_record(line) for line in made if "key" in line]
    pool = records + sample_records()
    lines += [base64_record(*record) for record in sample_records()]
    lines += [base64_record(*mutate_record(random, pool)) for _ in range(mutations)]
    for kind in EMBEDDED:
        raws = [_embedded(line, kind) for line in made if kind in line]
        damaged = [mutate(random, random.choice(raws), random.choice(raws)) for _ in range(mutations // 8)]
        lines += [json.dumps({kind: b64encode(raw).decode()}) for raw in damaged]
    return [json.dumps(case) for case in CASES] + list(dict.fromkeys(lines))


def _embedded(line: dict[str, Any], kind: str) -> bytes:
    return b64decode(line[kind])


def answered(jars: Path, lines: list[str]) -> list[dict[str, Any]]:
    """Return each input with Kafka's result. A refusal has no text, because the text is not a contract."""
    answers = [json.loads(line) for line in oracle(jars, "decode", stdin="\n".join(lines) + "\n")]
    plain = [{"refused": True} if "error" in answer else answer for answer in answers]
    return [{"input": json.loads(line), "kafka": answer} for line, answer in zip(lines, plain, strict=True)]


def write(jars: Path, name: str, lines: list[Any]) -> None:
    """Write a golden file. Its header contains the source and the digest of the other lines."""
    body = "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    made_by = {"made_by": "oracle/regenerate.py", **json.loads(oracle(jars, "version")[0])}
    header = {**made_by, "lines": len(lines), "sha256": hashlib.sha256(body.encode()).hexdigest()}
    text = f"{json.dumps(header)}\n{body}\n"
    (GOLDEN / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def regenerate(jars: Path) -> None:
    """Write every golden file."""
    write(jars, "schemas", [json.loads(line) for line in oracle(jars, "schemas")])
    write(jars, "utf8", [json.loads(line) for line in oracle(jars, "utf8")])
    write(jars, "records", answered(jars, inputs(jars, SEED, each=4, mutations=1500)))


def check(jars: Path, seeds: int) -> int:
    """Compare both decoders on new records, print each disagreement, and return their number."""
    wrong = 0
    for seed in range(1000, 1000 + seeds):
        lines = answered(jars, inputs(jars, seed, each=40, mutations=100_000))
        found = [text for text in map(disagreement, lines) if text]
        refused = sum("refused" in line["kafka"] for line in lines)
        sys.stdout.write(f"seed {seed}: {len(lines)} records, Kafka refuses {refused}, {len(found)} disagreements\n")
        sys.stdout.writelines(f"{text}\n" for text in found[:20])
        wrong += len(found)
    return wrong


def main() -> int:
    """Read the command line, then regenerate or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jars", type=Path)
    parser.add_argument("--check", type=int, metavar="SEEDS")
    arguments = parser.parse_args()
    if arguments.check:
        return 1 if check(arguments.jars, arguments.check) else 0
    regenerate(arguments.jars)
    return 0


if __name__ == "__main__":
    sys.exit(main())
