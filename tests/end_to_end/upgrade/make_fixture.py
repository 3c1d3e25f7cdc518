"""Make a fixture of the upgrade test with the source code of an older monitor.

    git worktree add --detach /tmp/old v0.1.0
    python -m tests.end_to_end.upgrade.make_fixture /tmp/old 0.1.0
    git worktree remove --force /tmp/old

This writes `0.1.0.tar.xz` into this folder. It takes two minutes. The installed packages must suit the older code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.agreement import Agreement, Expected
from tests.end_to_end.conftest import commit, create_topics, produce
from tests.end_to_end.ghosts import write_record
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.members import Joining, Member, OpenClient, librdkafka
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.upgrade.fixture import (
    BROKER,
    CLASSIC_MEMBER,
    COPY,
    FOLDER,
    LATE,
    LATE_GROUPS,
    METRICS,
    OFFLINE_GROUPS,
    SUFFIX,
    TOPICS,
    pack,
)

UNKNOWN_KEY = b"\x00\x63"
"""A record with this key goes to quarantine. The coordinator ignores it, because Kafka has no record type 99."""

Clients = Mapping[str, tuple[str, OpenClient]]
"""The type and the client of each group with members, by group id."""


def main() -> None:
    """Make the fixture. Its members never leave their groups, so this process ends without closing the clients."""
    source, name = Path(sys.argv[1]).absolute(), sys.argv[2]
    with TemporaryDirectory() as work:
        folder = Path(work)
        broker = EmbeddedBroker(folder / "broker", properties=BROKER).start()
        run = ("env", "-C", str(source), f"PYTHONPATH={source}", sys.executable, "-m", "streaming.cli", "run")
        monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor", command=run).start()
        try:
            java = JavaClients(broker.bootstrap_servers, folder)
            clients = _clients(broker, java)
            _record(broker, monitor, java, clients)
            (folder / METRICS).write_text(monitor.scrape())
            assert monitor.stop() == 0
            _write_late_records(broker, java, clients)
        finally:
            monitor.kill()
            broker.stop()
        pack(folder, FOLDER / f"{name}{SUFFIX}")
    os._exit(0)


def _clients(broker: EmbeddedBroker, java: JavaClients) -> Clients:
    classic = partial(librdkafka, broker.bootstrap_servers, **CLASSIC_MEMBER)
    of_range = ("classic", classic(partition_assignment_strategy="range"))
    consumer = ("consumer", librdkafka(broker.bootstrap_servers, group_protocol="consumer"))
    return {
        "range": of_range,
        "roundrobin": ("classic", classic(partition_assignment_strategy="roundrobin")),
        "cooperative": ("classic", classic(partition_assignment_strategy="cooperative-sticky")),
        "consumer": consumer,
        "share": ("share", java.share()),
        "streams": ("streams", java.streams(into=COPY)),
        **dict(zip(LATE_GROUPS, (of_range, consumer), strict=True)),
    }


def _record(broker: EmbeddedBroker, monitor: MonitorProcess, java: JavaClients, clients: Clients) -> None:
    """Let the monitor read rebalances, commits and a quarantined record. Every commit gap of the end is open."""
    java.commits("nobody")  # the broker creates __consumer_offsets
    create_topics(broker, {**TOPICS, COPY: 1, LATE: 2})
    for group_id in OFFLINE_GROUPS:
        commit(broker, group_id, "orders", 3)
    write_record(broker, OFFLINE_GROUPS[0], UNKNOWN_KEY, b"")
    agreement = Agreement(java, monitor)

    def until_members(count: int) -> None:
        agreement.until_agreed({group_id: Expected(group_type, count) for group_id, (group_type, _) in clients.items()})

    def until_commits() -> None:
        for group_id, (group_type, _) in clients.items():
            assert bool(agreement.until_commits_agree(group_id)) == (group_type != "share"), group_id

    for number in (1, 2):
        _join_all(clients, number)
    monitor.wait_until_ready()
    until_members(2)
    until_commits()
    leaving = _join_all(clients, 3)
    until_members(3)
    produce(broker, {**TOPICS, LATE: 2}, records=5)
    count = "rebalance_monitor_commit_gap_seconds_count"
    closing = ("range", "roundrobin", "cooperative", "consumer", *LATE_GROUPS)
    until("closed gaps", lambda: all(monitor.value(count, group=group_id) for group_id in closing))
    for member in leaving:
        member.leave()
    until_members(2)
    until_commits()


def _join_all(clients: Clients, number: int) -> list[Member]:
    return [
        Member(client, Joining(group_id, f"{group_id}-{number}", [LATE] if group_id in LATE_GROUPS else [*TOPICS]))
        for group_id, (_, client) in clients.items()
    ]


def _write_late_records(broker: EmbeddedBroker, java: JavaClients, clients: Clients) -> None:
    """Let LATE_GROUPS commit, which closes their open commit gaps. Then let a third member join each of them."""

    def committed_offsets() -> list[int]:
        return [sum(java.commits(group_id).values()) for group_id in LATE_GROUPS]

    before, records = committed_offsets(), 7
    produce(broker, {LATE: 2}, records)
    until("commits", lambda: committed_offsets() == [total + 2 * records for total in before])
    late = {group_id: clients[group_id] for group_id in LATE_GROUPS}
    _join_all(late, 3)
    for group_id, (group_type, _) in late.items():
        until("three members", lambda: java.describe(group_type, [group_id])[group_id].settled(3))  # noqa: B023


if __name__ == "__main__":
    main()
