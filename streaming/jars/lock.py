"""`python -m streaming.jars.lock` resolves the dependencies of the jars in coordinates.py and rewrites jars.lock."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from pathlib import Path

from streaming.jars.cache import LOCK_PATH
from streaming.jars.coordinates import JAR_SETS, WITHOUT_DEPENDENCIES, Coordinate, JarSetName
from streaming.jars.ivy import BY_COORDINATE, fetch, pyspark_jars_folder
from streaming.jars.lockfile import LockedJar, format_lock


def main() -> None:
    """Resolve every set and write the lock file.

    The lock file omits the jars that pyspark contains, and the dependencies of the sets WITHOUT_DEPENDENCIES.
    """
    with tempfile.TemporaryDirectory() as folder:
        locked = {set_name: _resolve(set_name, Path(folder)) for set_name in JAR_SETS}
    LOCK_PATH.write_text(format_lock(locked))


def _resolve(set_name: JarSetName, folder: Path) -> list[LockedJar]:
    into = folder / set_name
    fetch(
        JAR_SETS[set_name],
        into,
        folder / "ivy" / set_name,
        transitive=set_name not in WITHOUT_DEPENDENCIES,
        pattern=BY_COORDINATE,
        on_jar=lambda address: print(address.rsplit("/", 1)[-1], file=sys.stderr),  # noqa: T201 - a command's output
    )
    # Spark's class loader searches pyspark's jars first, so it would never use a second copy of a module of pyspark.
    pyspark_jars = pyspark_jars_folder().glob("*.jar") if set_name == "spark" else ()
    pyspark_modules = {re.sub(r"-\d[^-]*(-.*)?$", "", jar.stem) for jar in pyspark_jars}
    locked = []
    for path in sorted(into.rglob("*.jar")):
        organisation, module, revision, _ = path.relative_to(into).parts
        if module not in pyspark_modules:
            content, coordinate = path.read_bytes(), Coordinate(organisation, module, revision)
            locked.append(LockedJar(coordinate, hashlib.sha256(content).hexdigest(), len(content)))
    return locked


if __name__ == "__main__":
    main()
