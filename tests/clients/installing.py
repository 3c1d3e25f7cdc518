"""Installs all client libraries into `.clients/`, each with its own package manager.

Run `python -m tests.clients.installing`. Installed libraries are kept. A library that cannot be installed is skipped.
The last lines of the output list such libraries with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from streaming.jars import Coordinate, JarsError
from streaming.jars.ivy import fetch
from streaming.java import find_java
from tests.clients.libraries import LIBRARIES, Library

SOURCES = Path(__file__).parent
FOLDER = SOURCES.parents[1] / ".clients"
_INSTALL_SECONDS = 600.0
_OLDEST_JAVA = "11"  # the class files run on this version and every later one


class NotInstalledError(Exception):
    """A library cannot be installed on this machine."""


def command(library: Library) -> list[str]:
    """Return the command that starts the program with members of this library."""
    if library.language == "go":
        return [str(FOLDER / "go" / "members")]
    if library.language == "node":
        return ["node", str(FOLDER / "node" / "members.js")]
    if library.language == "python":
        program = SOURCES / "python" / f"{_module_name(library)}_members.py"
        return [str(_environment(library) / "bin" / "python"), str(program)]
    class_path = os.pathsep.join([str(_classes()), f"{_jars(library)}/*"])
    # The processes run only for minutes, so the optimising compiler is disabled.
    options = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
    return [str(find_java()), *options, "-cp", class_path, "Members"]


def install(libraries: Iterable[Library], progress: Callable[[str], None]) -> dict[Library, str]:
    """Install missing libraries. Returns the reason for each library that cannot be installed."""
    FOLDER.mkdir(exist_ok=True)
    missing: dict[Library, str] = {}
    for library in libraries:
        done = FOLDER / f"installed-{library.name}-{library.version}"
        if done.exists():
            continue
        progress(f"installing {library}")
        try:
            _INSTALLERS[library.language](library)
        except (NotInstalledError, JarsError) as error:
            missing[library] = str(error)
        else:
            done.touch()
    return missing


def _install_go(library: Library) -> None:
    declared = (SOURCES / "go" / "go.mod").read_text()
    if f"{library.package} v{library.version}\n" not in declared:
        raise NotInstalledError(f"go.mod has a different version of {library.package}")
    _run(["go", "build", "-o", str(FOLDER / "go" / "members"), "."], SOURCES / "go")


def _install_node(library: Library) -> None:
    if f'"{library.package}": "{library.version}"' not in (SOURCES / "node" / "package.json").read_text():
        raise NotInstalledError(f"package.json has a different version of {library.package}")
    into = FOLDER / "node"
    into.mkdir(exist_ok=True)
    for name in ("package.json", "members.js"):
        shutil.copy(SOURCES / "node" / name, into)
    _run(["npm", "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"], into)


def _install_python(library: Library) -> None:
    environment = _environment(library)
    _run([sys.executable, "-m", "venv", "--clear", str(environment)], FOLDER)
    wanted = f"{library.package}=={library.version}"
    # Without a wheel for this Python, pip would compile an old package. The libraries for that are usually missing.
    _run([str(environment / "bin" / "pip"), "install", "--quiet", "--only-binary", library.package, wanted], FOLDER)


def _install_java(library: Library) -> None:
    coordinate = Coordinate("org.apache.kafka", library.package, library.version)
    fetch([coordinate], _jars(library), FOLDER / "ivy", transitive=True)
    if not (_classes() / "Members.class").exists():
        compiler = ["javac", "-Xlint:-options", "--release", _OLDEST_JAVA, "-d", str(_classes())]
        _run([*compiler, "-cp", f"{_jars(library)}/*", str(SOURCES / "java" / "Members.java")], FOLDER)


_INSTALLERS: Mapping[str, Callable[[Library], None]] = {
    "go": _install_go,
    "node": _install_node,
    "python": _install_python,
    "java": _install_java,
}


def _run(words: Sequence[str], folder: Path) -> None:
    try:
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS)
    except FileNotFoundError:
        raise NotInstalledError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"{words[0]} took more than {_INSTALL_SECONDS:g} s") from None
    if ran.returncode != 0:
        lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
        raise NotInstalledError(f"{Path(words[0]).name}: {' | '.join(lines[-2:])[:300]}")


def _module_name(library: Library) -> str:
    return re.sub(r"-streaming$", "", library.package).replace("-", "_")


def _environment(library: Library) -> Path:
    return FOLDER / "python" / f"{library.package}-{library.version}"


def _jars(library: Library) -> Path:
    return FOLDER / "java" / library.version


def _classes() -> Path:
    return FOLDER / "java" / "classes"


def _progress(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a command's output


def main() -> None:
    """Install all libraries. The exit code is 0 even if some cannot be installed."""
    missing = install(LIBRARIES, progress=_progress)
    for library, reason in missing.items():
        _progress(f"not installed: {library}: {reason}")


if __name__ == "__main__":
    main()
