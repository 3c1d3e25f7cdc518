"""`python -m tests.clients.capture`: let every group live, and keep what it wrote into `__consumer_offsets`.

Writes tests/streaming/protocol/clients/memberships.jsonl.gz, permanent data of `make test`; see README.md there.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from kafka import KafkaAdminClient

from streaming.embedded import EmbeddedBroker
from streaming.protocol import RecordType
from tests.clients.groups import GroupPlan, plans
from tests.clients.installing import install
from tests.clients.libraries import LIBRARIES
from tests.clients.members import Programs
from tests.clients.scenario import STEPS, LiveGroup, create_topics, settle
from tests.end_to_end.conftest import QUICK_BROKER
from tests.end_to_end.group_description import GroupDescription
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.what_kafka_says import RawRecord, WhatKafkaSays

MEMBERSHIPS = Path(__file__).parents[1] / "streaming" / "protocol" / "clients" / "memberships.jsonl.gz"

CLIENTS_BROKER = {
    **QUICK_BROKER,
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "10000",
}
_COMMITS = {int(RecordType.OFFSET_COMMIT_LEGACY), int(RecordType.OFFSET_COMMIT)}
_AT_A_TIME = 12

Captured = Mapping[str, object]


def main() -> None:
    """Run all groups whose name contains an argument, or all, a few at a time; then write the file."""
    wanted = [plan for plan in plans() if not sys.argv[1:] or any(part in plan.name for part in sys.argv[1:])]
    for library, why in install(LIBRARIES, progress=_progress).items():
        raise SystemExit(f"{library} is not installed: {why}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EmbeddedBroker(folder / "kafka", properties=CLIENTS_BROKER) as broker:
            java = JavaClients(broker.bootstrap_servers, folder)
            java.commits("nobody")  # A new broker has no __consumer_offsets until a coordinator is asked for.
            capturing = _Capturing(broker.bootstrap_servers, java, folder)
            captured = [line for wave in _waves(wanted) for line in capturing.live(wave)]
            java.close()
    order = {plan.name: number for number, plan in enumerate(wanted)}
    captured.sort(key=lambda line: order[str(line["group"])])
    write(captured, MEMBERSHIPS)


def _progress(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a command's output


def write(captured: Sequence[Captured], path: Path) -> None:
    """Write lines so that the same lines make the same file."""
    lines = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in captured)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _waves(wanted: Sequence[GroupPlan]) -> Iterator[Sequence[GroupPlan]]:
    """Dynamic and static groups apart: a static group's steps take as long as its sessions."""
    for _, alike in groupby(sorted(wanted, key=lambda plan: plan.static), key=lambda plan: plan.static):
        of_kind = list(alike)
        yield from (of_kind[at : at + _AT_A_TIME] for at in range(0, len(of_kind), _AT_A_TIME))


class _Capturing:
    def __init__(self, bootstrap_servers: str, java: JavaClients, folder: Path) -> None:
        self._bootstrap_servers, self._java, self._folder = bootstrap_servers, java, folder

    def live(self, wave: Sequence[GroupPlan]) -> list[Captured]:
        """Let some groups go through every step, side by side."""
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap_servers)
        create_topics(admin, wave)
        programs = Programs(self._bootstrap_servers, self._folder)
        groups = [LiveGroup(plan, programs, plan.partitions()) for plan in wave]
        captured: list[Captured] = []
        for step in STEPS:
            for group in groups:
                step.happens(group, admin)
            wrong = settle(groups, self._describe)
            _progress(f"{len(groups)} groups, {step.name}: {wrong or 'all as expected'}")
            captured += self._captured(groups, step.name, wrong)
        programs.end()
        admin.close()
        return captured

    def _describe(self, group_ids: Sequence[str]) -> Mapping[str, GroupDescription]:
        return self._java.describe("consumer", group_ids)

    def _captured(self, groups: Sequence[LiveGroup], step: str, wrong: Mapping[str, str]) -> list[Captured]:
        described = self._describe([group.plan.name for group in groups])
        kafka_says = WhatKafkaSays(self._bootstrap_servers)
        records = kafka_says.records()
        kafka_says.close()
        return [_line(group, step, wrong.get(group.plan.name), described[group.plan.name], records) for group in groups]


def _line(
    group: LiveGroup, step: str, wrong: str | None, described: GroupDescription, records: Sequence[RawRecord]
) -> Captured:
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
    """The group's records but commits, the last one of each key, in log order; none of what was deleted."""
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
