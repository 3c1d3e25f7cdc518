"""Installs the wheel like a new user, and runs the demo and the monitor from it.

`make release-check` runs `python -m tests.release_check`. The steps:

1. Each Python builds the wheel with `deploy/image/wheel.sh`, as the image does. All wheels are equal, byte for byte.
2. The wheel alone is installed into an empty environment. pip chooses the newest packages that the wheel allows. All
   other tests use the versions of requirements.lock. So only this environment shows that a newer package breaks the
   monitor, and the next steps use it. The packages of requirements.lock and the wheel are installed into a second
   environment, and fit together.
3. `jars --to` downloads the jars into an empty cache and copies them into a folder. This step runs once.
4. From here on, no registry is reachable. `jars --from` stores the jars in a second empty cache.
5. The demo shows every group. A broker and `run` start, and `run` becomes ready. All three stop with exit code 0.
6. No process of the check is left.

Steps 4 to 6 run for each Java. Each step prints one line. If a step fails, its output is printed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.error import URLError
from urllib.request import urlopen

import click
import psutil

from streaming.child_process import ChildProcess
from streaming.config.environment import without_settings
from streaming.demo.groups import DEMO_GROUPS
from streaming.embedded.ports import free_port
from streaming.errors import RemedyError
from streaming.java import find_java, java_version

_ROOT = Path(__file__).parents[1]
_LIMIT_SECONDS = 900.0
"""Time limit for each pair of a Python version and a Java version.

On two busy cores, the steps before the demo take five minutes.
"""
_STABLE_GROUPS = {group.group_id for group in DEMO_GROUPS if group.protocol} - {"demo-flapping"}
"""The groups that have members and do not rebalance all the time."""
_STOP_SECONDS = 30.0
_TAG = "RELEASE_CHECK_TAG"  # a name with REBALANCE_MONITOR_ would be a setting
_SHOWN_LINES = 30
_NOWHERE = {
    **dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    "no_proxy": "127.0.0.1",
    "JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9",
}
"""Environment variables with which no download works."""


class CheckError(RemedyError):
    """A step of the check failed."""


@dataclass
class _Check:
    """Runs commands in `folder`, and collects their output in one file."""

    folder: Path
    ends_at: float
    began: float = field(default_factory=time.monotonic)
    tag: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def log(self) -> Path:
        return self.folder / "output.log"

    def step(self, what: str) -> None:
        """Print the step that starts now, and forget the output of the previous steps."""
        click.echo(f"{time.monotonic() - self.began:5.0f} s  {what}")
        self.log.write_text("")

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return an environment in which neither the checkout nor a setting nor HOME has an effect."""
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        return {**without_settings(inherited), "HOME": str(self.folder / "home"), _TAG: self.tag, **variables}

    def output(self) -> str:
        """Return the output of the present step."""
        return self.log.read_text(errors="replace")

    def run(self, command: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> None:
        """Run a command. Raises CheckError if it fails or if the time is over."""
        started = ChildProcess([str(word) for word in command], self.log, self.environment(variables or {}))
        if not started.wait(max(0.0, self.ends_at - time.monotonic())):
            started.kill()
            raise CheckError("the time limit is over")
        if started.exit_code != 0:
            raise CheckError(f"{' '.join(map(str, command))} ended with code {started.exit_code}")

    def processes(self) -> Iterator[psutil.Process]:
        """Yield all running processes of this check."""
        for process in psutil.process_iter():
            try:
                if process.environ().get(_TAG) == self.tag and process.status() != psutil.STATUS_ZOMBIE:
                    yield process
            except psutil.Error:  # noqa: PERF203 - the process has ended, or belongs to a different user
                continue


@dataclass(frozen=True)
class _Installed:
    """The monitor in its environment, and the environment variables with which its commands run."""

    check: _Check
    program: Path
    variables: Mapping[str, str]

    def demo(self) -> None:
        """Run the demo until a table shows every group with members as Stable. Then stop the demo."""
        folder = str(self.check.folder / "demo")
        demo = self._start([self.program, "demo", "--folder", folder, "--metrics-port", str(free_port())])
        self._wait_until(demo, lambda: _stable_groups(self.check.output()) >= _STABLE_GROUPS)
        _stop("demo", demo)

    def watch(self) -> None:
        """Start a broker, a group and the monitor. Wait until the monitor is ready, and stop all three.

        Kafka creates `__consumer_offsets` for the first group. Without this topic, the monitor is not ready.
        """
        folder, kafka, port = self.check.folder / "run", free_port(), free_port()
        folder.mkdir()
        settings = {
            "REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{kafka}",
            "REBALANCE_MONITOR_METRICS__PORT": str(port),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        broker = self._start([self.program, "broker", "--port", str(kafka), "--folder", folder / "broker"])
        self._wait_until(broker, lambda: f"127.0.0.1:{kafka}\n" in self.check.output())
        groups: list[str | Path] = [self.program.with_name("python"), "-m", "streaming.demo"]
        group = self._start([*groups, "--bootstrap-servers", f"127.0.0.1:{kafka}", "--group", "demo-idle"])
        monitor = self._start([self.program, "run"], settings)
        self._wait_until(monitor, lambda: _is_ready(port))
        for name, process in (("run", monitor), ("the group", group), ("broker", broker)):
            _stop(name, process)

    def _start(self, command: Sequence[str | Path], settings: Mapping[str, str] | None = None) -> ChildProcess:
        environment = self.check.environment({**self.variables, **(settings or {})})
        return ChildProcess([str(word) for word in command], self.check.log, environment)

    def _wait_until(self, process: ChildProcess, is_done: Callable[[], bool]) -> None:
        while not is_done():
            if process.exit_code is not None:
                raise CheckError(f"a process ended with code {process.exit_code}")
            if time.monotonic() > self.check.ends_at:
                raise CheckError("the time limit is over")
            time.sleep(0.5)


def _stable_groups(output: str) -> set[str]:
    """Return the groups of the demo that its last table shows as Stable."""
    last_table = output.rpartition("kafka-rebalance-monitor demo")[2]
    return {line.split()[0] for line in last_table.splitlines() if line.startswith("demo-") and " Stable " in line}


def _stop(name: str, process: ChildProcess) -> None:
    process.stop(_STOP_SECONDS)
    if process.exit_code != 0:
        raise CheckError(f"{name} stopped with exit code {process.exit_code}")


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=2):
            return True
    except (URLError, OSError):
        return False


def _build(check: _Check, pythons: Sequence[str]) -> Path:
    """Step 1. Return the wheel."""
    wheels: dict[str, Path] = {}
    for number, python in enumerate(pythons):
        check.step(f"{python}: build the wheel")
        folder = check.folder / f"wheel-{number}"
        check.run([_ROOT / "deploy" / "image" / "wheel.sh", folder], {"PYTHON": python})
        (wheel,) = folder.glob("*.whl")
        wheels[hashlib.sha256(wheel.read_bytes()).hexdigest()] = wheel
    if len(wheels) > 1:
        raise CheckError(f"the wheels differ: {', '.join(map(str, wheels.values()))}")
    ((sha256, wheel),) = wheels.items()
    click.echo(f"         {wheel.name} {sha256}")
    return wheel


def _install(check: _Check, python: str, wheel: Path) -> Path:
    """Step 2. Return the command of the first environment."""
    check.step(f"{python}: install the wheel alone into an empty environment")
    program = _install_into(check, "venv", python, [[wheel]])
    check.step(f"{python}: install the packages of requirements.lock and the wheel into a second environment")
    locked: list[str | Path] = ["--require-hashes", "-r", _ROOT / "requirements.lock"]
    check.run([_install_into(check, "locked", python, [locked, ["--no-deps", wheel]]), "config", "check"])
    shutil.rmtree(check.folder / "locked", ignore_errors=True)
    return program


def _install_into(check: _Check, name: str, python: str, installs: Sequence[Sequence[str | Path]]) -> Path:
    """Create an empty environment, run `pip install` with each list of arguments, and return the monitor's command."""
    environment = check.folder / name
    shutil.rmtree(environment, ignore_errors=True)
    pip: list[str | Path] = [environment / "bin" / "pip", "--disable-pip-version-check"]
    pip_settings = {"HOME": os.environ.get("HOME", "/")}  # pip's cache and the registry that pip uses
    check.run([python, "-m", "venv", environment])
    for arguments in installs:
        check.run([*pip, "install", "--no-compile", *arguments], pip_settings)
    check.run([*pip, "check"])
    return environment / "bin" / "rebalance-monitor"


def _run_offline(check: _Check, program: Path, carried: Path, java_home: str) -> None:
    """Steps 4 to 6."""
    java = f"Java {java_version(_java(java_home))}"
    variables = {"REBALANCE_MONITOR_CACHE_DIR": str(check.folder / "cache"), "JAVA_HOME": java_home, **_NOWHERE}
    installed = _Installed(check, program, variables)
    check.step(f"{java}: jars --from, without access to a registry")
    check.run([program, "jars", "--from", carried], variables)
    check.step(f"{java}: demo, until it shows every group")
    installed.demo()
    check.step(f"{java}: broker and run")
    installed.watch()
    if left := [" ".join(process.cmdline()) for process in check.processes()]:
        raise CheckError(f"processes are left: {'; '.join(left)}")
    for folder in ("cache", "demo", "run"):
        shutil.rmtree(check.folder / folder)


def _run_steps(check: _Check, pythons: Sequence[str], java_homes: Sequence[str]) -> None:
    for java_home in java_homes:
        java_version(_java(java_home))  # an error now is better than after the first installation
    wheel = _build(check, pythons)
    carried = check.folder / "jars"
    for python in pythons:
        program = _install(check, python, wheel)
        if not carried.exists():
            check.step("jars --to, with an empty cache")
            check.run([program, "jars", "--to", carried], {"REBALANCE_MONITOR_CACHE_DIR": str(check.folder / "first")})
        for java_home in java_homes:
            _run_offline(check, program, carried, java_home)


def _java(java_home: str) -> Path:
    return Path(java_home, "bin", "java")


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


@click.command()
@click.option("--python", "pythons", multiple=True, help="A Python interpreter. Repeatable [default: this one].")
@click.option(
    "--java-home", "java_homes", multiple=True, help="A Java installation. Repeatable [default: the one found]."
)
def main(pythons: tuple[str, ...], java_homes: tuple[str, ...]) -> None:
    """Check the wheel with each Python and each Java. The exit code is 1 if a step failed."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        pythons = pythons or (sys.executable,)
        java_homes = java_homes or (str(find_java().resolve().parent.parent),)
        with tempfile.TemporaryDirectory(prefix="release-check-") as folder:
            check = _Check(Path(folder), time.monotonic() + _LIMIT_SECONDS * len(pythons) * len(java_homes))
            with _in_folder(check):
                _run_steps(check, pythons, java_homes)
                check.step("the wheel works")
    except RemedyError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def _in_folder(check: _Check) -> Iterator[None]:
    """If a step fails, print the end of its output. In any case, leave no process.

    `python -m` searches the current folder first. In the checkout, it would find the sources instead of the wheel.
    """
    previous = Path.cwd()
    os.chdir(check.folder)
    try:
        yield
    except CheckError:
        click.echo("\n".join(check.output().splitlines()[-_SHOWN_LINES:]), err=True)
        raise
    finally:
        for process in check.processes():
            process.kill()
        os.chdir(previous)


if __name__ == "__main__":
    main(prog_name="python -m tests.release_check")
