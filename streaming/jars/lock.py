"""`python -m streaming.jars.lock`: ask what the jars of coordinates.py need, and write jars.lock anew."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from pathlib import Path

from streaming.jars.cache import LOCK_PATH
from streaming.jars.coordinates import ALONE, JAR_SETS, Coordinate, JarSetName
from streaming.jars.ivy import BY_COORDINATE, fetch, pyspark_jars_folder
from streaming.jars.lockfile import LockedJar, format_lock


def main() -> None:
    """Resolve every set with all it needs that is not there anyway, and write the lock."""
    with tempfile.TemporaryDirectory() as folder:
        locked = {set_name: _resolve(set_name, Path(folder)) for set_name in JAR_SETS}
    LOCK_PATH.write_text(format_lock(locked))


def _resolve(set_name: JarSetName, folder: Path) -> list[LockedJar]:
    into = folder / set_name
    fetch(
        JAR_SETS[set_name],
        into,
        folder / "ivy" / set_name,
        transitive=set_name not in ALONE,
        pattern=BY_COORDINATE,
        on_jar=lambda address: print(address.rsplit("/", 1)[-1], file=sys.stderr),  # noqa: T201 - a command's output
    )
    jars = [_locked(path, into) for path in sorted(into.rglob("*.jar"))]
    # Spark's class loader asks its own jars first, so a second copy of what pyspark ships would never be used.
    shipped = _modules_pyspark_ships() if set_name == "spark" else frozenset()
    return [jar for jar in jars if jar.coordinate.module not in shipped]


def _locked(path: Path, root: Path) -> LockedJar:
    organisation, module, revision, _ = path.relative_to(root).parts
    content = path.read_bytes()
    return LockedJar(Coordinate(organisation, module, revision), hashlib.sha256(content).hexdigest(), len(content))


def _modules_pyspark_ships() -> frozenset[str]:
    return frozenset(re.sub(r"-\d[^-]*(-.*)?$", "", jar.stem) for jar in pyspark_jars_folder().glob("*.jar"))


if __name__ == "__main__":
    main()
