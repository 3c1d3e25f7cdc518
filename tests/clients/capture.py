"""Captures the records that groups write into `__consumer_offsets`.

`python -m tests.clients.capture [PART OF A GROUP'S NAME ...]` writes
tests/streaming/protocol/clients/memberships.jsonl.gz, which is test data of `make test` (see README.md there). The
lines of other groups stay in the file. The lines of groups that no longer exist in `groups.py` are deleted.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from streaming.protocol import RecordType
from tests.clients.groups import plans, select_plans
from tests.clients.installing import install
from tests.clients.libraries import LIBRARIES
from tests.clients.scenario import STEPS, LiveGroup, Step
from tests.clients.stage import Stage, open_stage, waves
from tests.end_to_end.group_description import GroupDescription
from tests.end_to_end.kafka_reference import KafkaReference, RawRecord

MEMBERSHIPS = Path(__file__).parents[1] / "streaming" / "protocol" / "clients" / "memberships.jsonl.gz"

_COMMITS = {int(RecordType.OFFSET_COMMIT_LEGACY), int(RecordType.OFFSET_COMMIT)}

CapturedLine = Mapping[str, object]


def main() -> None:
    """Run the groups whose name contains an argument, or all groups, in waves. Writes the file after each wave."""
    wanted = select_plans(sys.argv[1:])
    for library, reason in install(LIBRARIES, progress=_progress).items():
        raise SystemExit(f"{library} is not installed: {reason}")
    with tempfile.TemporaryDirectory() as folder, open_stage(Path(folder)) as stage:
        for wave in waves(wanted):
            captured: list[CapturedLine] = []
            stage.run_steps(wave, STEPS, lambda *what, captured=captured: captured.extend(_capture(stage, *what)))
            write(_merge(read(MEMBERSHIPS), captured), MEMBERSHIPS)


def _merge(before: Iterable[CapturedLine], captured: Sequence[CapturedLine]) -> list[CapturedLine]:
    """Replace earlier lines of the captured groups. Returns the lines in the order of the plans."""
    order = {plan.name: number for number, plan in enumerate(plans())}
    replaced = {line["group"] for line in captured}
    lines = [*(line for line in before if line["group"] not in replaced and line["group"] in order), *captured]
    return sorted(lines, key=lambda line: order[str(line["group"])])


def _progress(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a command's output


def read(path: Path) -> list[CapturedLine]:
    """Return all lines of the file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write(captured: Sequence[CapturedLine], path: Path) -> None:
    """Write lines. Equal lines give an equal file."""
    lines = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in captured)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _capture(stage: Stage, groups: Sequence[LiveGroup], step: Step, wrong: Mapping[str, str]) -> list[CapturedLine]:
    _progress(f"{len(groups)} groups, {step.name}: {wrong or 'all as expected'}")
    described = stage.describe([group.plan.name for group in groups])
    kafka_says = KafkaReference(stage.bootstrap_servers)
    records = kafka_says.records()
    kafka_says.close()
    return [
        _line(group, step.name, wrong.get(name) or group.describe_violations(described[name]), described[name], records)
        for group in groups
        for name in [group.plan.name]
    ]


def _line(
    group: LiveGroup, step: str, wrong: str | None, described: GroupDescription, records: Sequence[RawRecord]
) -> CapturedLine:
    plan = group.plan
    members = sorted(described.members.items(), key=lambda item: item[1].client_id)
    subscriptions = group.subscriptions()
    library_of = {plan.client_id(number): library for number, library in enumerate(plan.libraries, start=1)}
    return {
        "group": plan.name,
        "strategy": plan.strategy,
        "step": step,
        "partitions": dict(group.partitions),
        "broken_law": wrong,
        "group_type": described.group_type,
        "state": described.state,
        "assignor": described.assignor,
        "members": [
            {
                "member_id": member_id,
                "client_id": member.client_id,
                "instance_id": member.group_instance_id,
                "library": library_of[member.client_id].name,
                "version": library_of[member.client_id].version,
                "topics": subscriptions.get(member.client_id),
                "assignment": sorted(member.assignment or ()),
            }
            for member_id, member in members
        ],
        "records": [
            {"timestamp_ms": record.timestamp_ms, "key": _base64(record.key), "value": _base64(record.value)}
            for record in _latest_records(plan.name, records)
        ],
    }


def _latest_records(group_id: str, records: Sequence[RawRecord]) -> list[RawRecord]:
    """Return the last record of each key of the group, in log order, without commits and tombstones."""
    group_in_key = len(group_id).to_bytes(2, "big") + group_id.encode()
    latest: dict[bytes, RawRecord] = {}
    for record in records:
        key = record.key or b""
        if int.from_bytes(key[:2], "big") not in _COMMITS and key[2:].startswith(group_in_key):
            latest.pop(key, None)
            latest[key] = record
    return [record for record in latest.values() if record.value is not None]


def _base64(raw: bytes | None) -> str:
    return base64.b64encode(raw or b"").decode()


if __name__ == "__main__":
    main()
