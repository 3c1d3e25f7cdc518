"""Download jars with Ivy, which pyspark contains, so that Maven is not required.

Ivy uses a home folder that only this project uses. So a damaged `~/.m2` or `~/.ivy2` of the user has no effect.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from streaming.child_process import with_parent_death_signal
from streaming.config.environment import without_settings
from streaming.errors import RemedyError
from streaming.jars.coordinates import Coordinate
from streaming.java import find_java

FLAT = "[module]-[revision].[ext]"
BY_COORDINATE = "[organisation]/[module]/[revision]/[module]-[revision].[ext]"
_FAILURE = re.compile(r"(Exception|Server access error|not found|FAILED|UNRESOLVED|No space left).*")


class JarsError(RemedyError):
    """Error: jars could not be downloaded, stored or verified."""


def pyspark_jars_folder() -> Path:
    """Return the folder of pyspark's jars, without importing pyspark. Raises JarsError if pyspark is not installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsError("pyspark is not installed: run `make setup`, or pip install kafka-rebalance-monitor")
    return Path(spec.origin).parent / "jars"


def fetch(  # noqa: PLR0913 - `resolve` and `python -m streaming.jars.lock` use different keyword arguments
    coordinates: Iterable[Coordinate],
    into: Path,
    ivy_home: Path,
    *,
    transitive: bool = False,
    pattern: str = FLAT,
    on_jar: Callable[[str], None] = lambda _: None,
) -> None:
    """Download jars into a folder. Call `on_jar` with the address of each jar when its download starts.

    If `transitive` is True, Ivy also reads poms and downloads all runtime dependencies. Downloaded files stay in
    `ivy_home`, so a retry downloads only the missing files. Raises JarsError with the error message of Ivy.
    """
    ivy_home.mkdir(parents=True, exist_ok=True)
    settings, module_file = ivy_home / "settings.xml", ivy_home / "wanted.xml"
    settings.write_text(_settings_xml(ivy_home, transitive=transitive))
    module_file.write_text(_module_xml(coordinates, transitive=transitive))
    ivy_jar = next(iter(sorted(pyspark_jars_folder().glob("ivy-*.jar"))), None)
    if ivy_jar is None:
        raise JarsError(f"pyspark has no ivy-*.jar in {pyspark_jars_folder()}: install pyspark again")
    arguments = ["-settings", settings, "-ivy", module_file, "-confs", "default", "-retrieve", into / pattern]
    _run_ivy([str(word) for word in (find_java(), "-jar", ivy_jar, *arguments)], on_jar)


def _run_ivy(command: list[str], on_jar: Callable[[str], None]) -> None:
    failures: list[str] = []
    with subprocess.Popen(
        with_parent_death_signal(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=without_settings(os.environ),
    ) as ivy:
        try:
            for line in ivy.stdout or ():
                if line.startswith("downloading ") and ".jar " in line:
                    on_jar(line.split()[1])
                if match := _FAILURE.search(line):
                    failures.append(match[0].strip()[:200])
        except BaseException:  # also KeyboardInterrupt: Ivy must not continue when this process no longer waits
            ivy.kill()
            raise
    if ivy.returncode != 0:
        reason = failures[0] if failures else f"Ivy ended with code {ivy.returncode}"
        raise JarsError(
            f"jars could not be downloaded ({reason}): check the network and run `rebalance-monitor jars` again. "
            "Without internet access, use `rebalance-monitor jars --from FOLDER`. For a proxy, set "
            "JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=... -Dhttps.proxyPort=..."
        )


def _settings_xml(ivy_home: Path, *, transitive: bool) -> str:
    # `ibiblio` without a root is Maven Central. With usepoms=false, Ivy downloads only the jar.
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


def _module_xml(coordinates: Iterable[Coordinate], *, transitive: bool) -> str:
    conf = "default->compile,runtime(*),master(*)" if transitive else "default->*"
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(coordinate.organisation)} name={quoteattr(coordinate.module)}"
        f' rev={quoteattr(coordinate.revision)} transitive="{str(transitive).lower()}" conf={quoteattr(conf)}/>'
        for coordinate in coordinates
    )
    return f"""<ivy-module version="2.0">
  <info organisation="kafka-rebalance-monitor" module="wanted"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
