"""Runs the clients of the demo in separate processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from streaming.child_process import ChildProcess
from streaming.demo.groups import DEMO_GROUPS, DemoGroup
from streaming.demo.topics import DEMO_TOPICS, create_demo_topics
from streaming.errors import RemedyError

_STOP_GRACE_SECONDS = 8.0


class DemoError(RemedyError):
    """Error: a process of the demo failed, or the folder of the demo cannot be used."""


class DemoLoad:
    """The Kafka clients of the demo: a producer, and the members of the groups.

    `only` contains the ids of the groups to run (default: all demo groups). `logs` is the folder of the clients' logs,
    or None for no logs. The clients end when this process ends.

    Example:
        with DemoLoad(broker.bootstrap_servers, only={"demo-range"}):
            ...

    """

    def __init__(
        self, bootstrap_servers: str, *, only: Collection[str] | None = None, logs: Path | None = None
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._logs = logs
        self._processes: dict[str, ChildProcess] = {}
        self.groups: tuple[DemoGroup, ...] = _select_groups(only)

    def start(self) -> Self:
        """Create the topics and start the clients. The clients join their groups a few seconds later."""
        clients = sorted({group.client for group in self.groups})
        subscribed = {topic for group in self.groups for topic in group.topics}
        create_demo_topics(self._bootstrap_servers, [topic for topic in DEMO_TOPICS if topic in subscribed])
        for role in ("producer", *clients):
            self._processes[role] = self._run(role)
        return self

    def check(self) -> None:
        """Raise DemoError if a client process ended unexpectedly."""
        for role, process in self._processes.items():
            if process.exit_code is not None:
                raise DemoError(
                    f"the demo's {role} process ended with code {process.exit_code}: read {process.output} and restart "
                    "the demo"
                )

    def stop(self, grace_seconds: float = _STOP_GRACE_SECONDS) -> None:
        """Let every member leave its group. After `grace_seconds`, kill the processes that still run."""
        deadline = time.monotonic() + grace_seconds
        for process in self._processes.values():
            process.ask_to_end()
        for process in self._processes.values():
            process.stop(max(0.0, deadline - time.monotonic()))
        self._processes.clear()

    def __enter__(self) -> Self:
        """Start the clients."""
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the clients."""
        self.stop()

    def _run(self, role: str) -> ChildProcess:
        output = Path(os.devnull) if self._logs is None else self._logs / f"demo-{role}.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        module = [sys.executable, "-m", "streaming.demo.clients", "--role", role]
        arguments = ["--bootstrap-servers", self._bootstrap_servers, *(group.group_id for group in self.groups)]
        return ChildProcess([*module, *arguments], output)


def _select_groups(only: Collection[str] | None) -> tuple[DemoGroup, ...]:
    group_ids = {group.group_id for group in DEMO_GROUPS}
    if unknown := sorted(set(only or ()) - group_ids):
        raise ValueError(f"unknown demo group {', '.join(unknown)}: the groups are {', '.join(sorted(group_ids))}")
    return tuple(group for group in DEMO_GROUPS if only is None or group.group_id in only)
