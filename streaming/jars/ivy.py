"""Fetching jars with the Ivy that pyspark ships, so that nobody needs Maven.

Ivy gets a home of its own: a broken `~/.m2` or `~/.ivy2` of the user (a pom without its jar is enough) can't hurt.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from streaming.child_process import tied_to_us
from streaming.config.environment import without_settings
from streaming.errors import RemedyError
from streaming.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streaming.jars.coordinates import Coordinate

FLAT = "[module]-[revision].[ext]"
BY_COORDINATE = "[organisation]/[module]/[revision]/[module]-[revision].[ext]"
_FAILURE = re.compile(r"(Exception|Server access error|not found|FAILED|UNRESOLVED|No space left).*")


class JarsError(RemedyError):
    """Jars could not be fetched, kept or verified."""


def pyspark_jars_folder() -> Path:
    """Return the folder of the jars inside the installed pyspark, without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsError("pyspark is not installed here: run `make setup`, or pip install kafka-rebalance-monitor")
    return Path(spec.origin).parent / "jars"


def fetch(  # noqa: PLR0913 - the keyword arguments are the two ways in which the lock and its making differ
    coordinates: Iterable[Coordinate],
    into: Path,
    ivy_home: Path,
    *,
    transitive: bool = False,
    pattern: str = FLAT,
    on_jar: Callable[[str], None] = lambda _: None,
) -> None:
    """Fetch jars into a folder; `on_jar` is told the address of each as its download starts.

    Not transitive: exactly these jars and no pom, one request each. Transitive: poms are read and all that the jars
    need at run time comes too. What has come stays in `ivy_home`, so that a second try only fetches the rest.
    Raises JarsError with Ivy's own reason.
    """
    ivy_home.mkdir(parents=True, exist_ok=True)
    settings, wanted = ivy_home / "settings.xml", ivy_home / "wanted.xml"
    settings.write_text(_settings_xml(ivy_home, transitive=transitive))
    wanted.write_text(_wanted_xml(coordinates, transitive=transitive))
    ivy_jar = next(iter(sorted(pyspark_jars_folder().glob("ivy-*.jar"))), None)
    if ivy_jar is None:
        raise JarsError(f"pyspark has no ivy-*.jar in {pyspark_jars_folder()}: install pyspark again")
    arguments = ["-settings", settings, "-ivy", wanted, "-confs", "default", "-retrieve", into / pattern]
    _run_ivy([str(word) for word in (find_java(), "-jar", ivy_jar, *arguments)], on_jar)


def _run_ivy(command: list[str], on_jar: Callable[[str], None]) -> None:
    failures: list[str] = []
    with subprocess.Popen(
        tied_to_us(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=without_settings(os.environ),
    ) as ivy:
        try:
            for line in ivy.stdout or ():
                if line.startswith("downloading ") and ".jar " in line:
                    on_jar(line.split()[1])
                failures.extend(_failure_in(line))
        except BaseException:  # Ctrl-C too: Ivy must not go on downloading behind our back
            ivy.kill()
            raise
    if ivy.returncode != 0:
        reason = failures[0] if failures else f"Ivy ended with code {ivy.returncode}"
        raise JarsError(
            f"jars could not be fetched ({reason}): check the network (a proxy is set by "
            "JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=... -Dhttps.proxyPort=...) and run `rebalance-monitor jars` again"
        )


def _failure_in(line: str) -> Iterator[str]:
    if found := _FAILURE.search(line):
        yield found.group(0).strip()[:200]


def _settings_xml(ivy_home: Path, *, transitive: bool) -> str:
    # `ibiblio` without a root is Maven Central; usepoms=false asks for the jar alone.
    return f"""<ivysettings>
  <settings defaultResolver="central"/>
  <caches defaultCacheDir={quoteattr(str(ivy_home / "cache"))}/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="{str(transitive).lower()}" timeoutConstraint="patient"/>
  </resolvers>
</ivysettings>
"""


def _wanted_xml(coordinates: Iterable[Coordinate], *, transitive: bool) -> str:
    conf = "default->compile,runtime(*),master(*)" if transitive else "default->*"
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(wanted.organisation)} name={quoteattr(wanted.module)}"
        f' rev={quoteattr(wanted.revision)} transitive="{str(transitive).lower()}" conf={quoteattr(conf)}/>'
        for wanted in coordinates
    )
    return f"""<ivy-module version="2.0">
  <info organisation="kafka-rebalance-monitor" module="wanted"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
