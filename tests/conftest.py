"""Order and distribution of all tests over processes, and the compiler of the JVMs of slow tests."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling


SHARING = {
    "shared monitor": (
        "test_agrees_with_kafka.py",
        "test_every_client_agrees.py",
        "test_on_call.py",
        "test_pages.py",
        "test_what_causes_lag.py",
    ),
    "demo": ("test_dashboards.py", "test_paging.py"),
    "lost broker": ("test_bad_weather.py", "test_grown_log.py", "test_rewound_log.py"),
}
"""Files of `end_to_end` that share a broker or a monitor. One process runs all files of a group."""

C1_ONLY = "-XX:TieredStopAtLevel=1"
"""The compiler of the JVMs of slow tests. C2 pays off only after a minute.

Without C2, the start of a monitor takes a third less processor time. For a JVM that does not get the options below, set
`JDK_JAVA_OPTIONS` to this value. Only its launcher reads this variable, and its first line of output names it.
"""

SPARK_CONF = {"spark.driver.extraJavaOptions": C1_ONLY}
"""The setting `spark.conf` of slow tests. A session that gets `SparkSettings()` does not read the environment."""

LONGEST = ("tests/end_to_end/test_survives_kills.py", "tests/streaming/demo/test_demo_command.py")
"""The longest files. They run first, so that no process waits for them at the end."""

_GROUP_OF = {f"tests/end_to_end/{file}": group for group, files in SHARING.items() for file in files}


def group_of(nodeid: str) -> str:
    """Return the name of the group that a test belongs to, or else its file."""
    file = nodeid.partition("::")[0]
    return _GROUP_OF.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """With `--dist loadfile`, run a whole file, or all files of a group, in one process."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - not with `-p no:xdist`

    class SharingFiles(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return SharingFiles(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, and the tests of a group one after the other."""
    groups = dict.fromkeys((*LONGEST, *(group_of(item.nodeid) for item in items)))
    place = {group: number for number, group in enumerate(groups)}
    items.sort(key=lambda item: place[group_of(item.nodeid)])


def pytest_configure() -> None:
    """Exclude this machine from the proxies of the environment. All servers of the tests run on this machine.

    urllib reads the proxies only once in each process, at its first request. Once, this request was in a test that
    sets an unreachable proxy, and then all requests of later tests failed.
    """
    os.environ["no_proxy"] = ",".join(filter(None, (os.environ.get("no_proxy"), "127.0.0.1,localhost")))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the JVMs of slow tests compile with C1 only, if their options are not set already."""
    if _has_slow(session.items):
        os.environ.setdefault("KAFKA_JVM_PERFORMANCE_OPTS", C1_ONLY)
        os.environ.setdefault("REBALANCE_MONITOR_SPARK__CONF", json.dumps(SPARK_CONF))


def _has_slow(items: Sequence[pytest.Item]) -> bool:
    return any(item.get_closest_marker("slow") for item in items)
