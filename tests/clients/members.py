"""Runs members of groups in separate processes, in any language. A member can leave in order, or be killed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streaming.child_process import with_parent_death_signal
from tests.clients.installing import command
from tests.clients.libraries import Library

_TIMES = {"heartbeat_interval_ms": "500", "metadata_max_age_ms": "2000", "commit_interval_ms": "500"}


@dataclass(frozen=True)
class JoinCommand:
    """The command for one member to join a group. Every program in `go/`, `node/`, `python/` and `java/` knows it."""

    library: Library
    strategy: str
    group_id: str
    client_id: str
    topics: Sequence[str]
    session_timeout_ms: int
    instance_id: str | None = None
    to_be_killed: bool = False

    def line(self, bootstrap_servers: str) -> str:
        """Return the command line for the program. Static members have an `instance_id`."""
        static: Mapping[str, str] = {} if self.instance_id is None else {"instance_id": self.instance_id}
        options = {
            "bootstrap_servers": bootstrap_servers,
            "library": self.library.name,
            "strategy": self.strategy,
            "group_id": self.group_id,
            "client_id": self.client_id,
            "topics": ",".join(self.topics),
            "session_timeout_ms": str(self.session_timeout_ms),
            **_TIMES,
            **static,
        }
        return " ".join(["join", *(f"{name}={value}" for name, value in options.items())])

    @property
    def program(self) -> str:
        """Return the name of the process of this member.

        All members of a library share one process. Members that will be killed have a separate one.
        """
        own_process = f"-{self.client_id}" if self.library.one_per_process else ""
        return f"{self.library.name}-{self.library.version}{'-to-be-killed' if self.to_be_killed else ''}{own_process}"


class MemberProcesses:
    """The processes of the members. A kill ends all members of the same process."""

    def __init__(self, bootstrap_servers: str, logs: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._logs = logs
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._program_of: dict[str, str] = {}

    def join(self, joining: JoinCommand) -> None:
        """Start a member."""
        if joining.program not in self._running:
            self._running[joining.program] = self._start(joining)
        self._program_of[joining.client_id] = joining.program
        self._send(joining.client_id, joining.line(self._bootstrap_servers))

    def leave(self, client_id: str) -> None:
        """Stop a member without waiting for it. A dynamic member leaves the group, a static member does not."""
        self._send(client_id, f"leave {client_id}")

    def kill(self, client_id: str) -> None:
        """Kill the process of a member by SIGKILL. Its members send nothing more to the broker."""
        if process := self._running.pop(self._program_of[client_id], None):
            process.kill()
            process.communicate()

    def failure(self, client_id: str) -> str | None:
        """Return the reason if the process of a member has ended by itself, or None if it still runs."""
        program = self._program_of[client_id]
        code = self._running[program].poll()
        if code is None:
            return None
        return f"{program} ended with {code}: {self._log(program).read_text(errors='replace')[-500:]}"

    def end(self) -> None:
        """Kill all processes. Their members leave when their sessions end."""
        for process in self._running.values():
            process.kill()
            process.communicate()
        self._running.clear()

    def _log(self, program: str) -> Path:
        return self._logs / f"{program}.log"

    def _start(self, joining: JoinCommand) -> subprocess.Popen[str]:
        words = with_parent_death_signal(command(joining.library))
        with self._log(joining.program).open("ab") as log:
            return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, bufsize=1)

    def _send(self, client_id: str, line: str) -> None:
        stdin = self._running[self._program_of[client_id]].stdin
        assert stdin is not None
        with suppress(BrokenPipeError):  # the process has ended; `failure` returns the reason
            stdin.write(f"{line}\n")
