"""A fixture of the upgrade test: a Kafka log, and what an older monitor wrote while it read a part of this log.

An archive `NAME.tar.xz` contains these entries:

- `broker/topics/`: the folder of the broker, with all topics. All members were in their groups when the broker stopped.
- `monitor/checkpoint/` and `monitor/tables/`: the folders of the older monitor, which was stopped.
- `metrics.txt`: the last scrape of the older monitor.

After the monitor had stopped, the groups of LATE_GROUPS wrote more records.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent
ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
SUFFIX = ".tar.xz"
METRICS = "metrics.txt"

TOPICS = {"orders": 4, "clicks": 2}
COPY, LATE = "copy", "late"
"""Kafka Streams writes to the topic COPY. Only the groups of LATE_GROUPS read the topic LATE."""

LATE_GROUPS = ("late-range", "late-consumer")
OFFLINE_GROUPS = ("offline-0", "offline-1")
"""Groups without members, one in each partition of `__consumer_offsets`. They committed offset 3 of `orders-0`."""

_SESSION_MS = 600_000
"""All members have ended long ago. With this session timeout, they stay in their groups while a test runs."""

_FOREVER = str(2**63 - 1)

BROKER = {
    "offsets.topic.num.partitions": str(len(OFFLINE_GROUPS)),
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # The records get older from year to year. The broker must not delete any of them.
    "log.retention.ms": "-1",
    "log.cleaner.min.compaction.lag.ms": _FOREVER,
    "offsets.retention.minutes": "2147483647",
    **{
        f"group.{group_type}.{bound}session.timeout.ms": str(_SESSION_MS)
        for group_type in ("consumer", "share", "streams")
        for bound in ("", "max.")
    },
    **{
        f"group.{group_type}.{bound}heartbeat.interval.ms": "300"
        for group_type in ("consumer", "share", "streams")
        for bound in ("", "min.")
    },
    "group.streams.initial.rebalance.delay.ms": "100",
}
"""Properties of the broker, both when the fixture is made and in the test."""

CLASSIC_MEMBER = {"session_timeout_ms": _SESSION_MS, "max_poll_interval_ms": _SESSION_MS, "heartbeat_interval_ms": 300}
"""Settings of the members of classic groups, with the names that `members.librdkafka` takes."""


def unpack(archive: Path, into: Path) -> Path:
    """Unpack an archive into a folder, and return the folder."""
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    return into


def pack(folder: Path, archive: Path) -> None:
    """Pack the entries of a fixture from a folder."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for entry in (Path("broker", "topics"), Path("monitor", "checkpoint"), Path("monitor", "tables"), METRICS):
            packed.add(folder / entry, str(entry), filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
