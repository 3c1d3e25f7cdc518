"""Find the class archive of a JVM (JEP 350), and the JVM options that use or write it.

`class_archive_training.py` creates the archives.

1. A class archive contains the parsed and verified classes of an earlier run. A JVM maps the archive into its memory.
   It then reads no class files of these classes.
2. An archive fits only one Java and one class path. So the name of its file contains a hash of both. If there is no
   file with this name, the JVM starts without an archive.
3. The JVM itself also checks that the archive fits, with the sizes and times of all jars. If the archive does not fit,
   the JVM starts without it and prints nothing about it.
4. The archives of one Python environment are in one folder of the cache. A new archive replaces the older ones of its
   kind.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from streaming.jars import cache_folder

ARCHIVES = "class-archives"
"""The folder of the archives of all Python environments, in the cache."""

Kind = Literal["spark", "broker"]


def recording_options(partial: Path) -> list[str]:
    """Return the JVM options that write an archive to the file `partial` when the JVM ends."""
    return [f"-XX:ArchiveClassesAtExit={partial}", "-Xlog:disable"]


class ClassArchive:
    """The archive of one kind of JVM. `class_path` has files and folders, in the order of the command line."""

    def __init__(self, kind: Kind, java: Path, class_path: Sequence[str]) -> None:
        self._kind = kind
        self.path = archives_folder() / f"{kind}-{_fingerprint(java, class_path)}.jsa"

    @property
    def options(self) -> list[str]:
        """Return the JVM options that use the archive. Return an empty list if there is no archive (rule 2)."""
        if not self.path.exists():
            return []
        return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]

    def publish(self, partial: Path) -> None:
        """Rename the complete file `partial`, and remove the older archives of this kind (rule 4)."""
        older = [path for path in self.path.parent.glob(f"{self._kind}-*.jsa") if path != self.path]
        partial.replace(self.path)
        for path in older:
            with suppress(OSError):
                path.unlink()


def archives_folder() -> Path:
    """Return the folder of the archives of this Python environment."""
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    return cache_folder() / ARCHIVES / environment


def _fingerprint(java: Path, class_path: Sequence[str]) -> str:
    home = java.resolve().parent.parent
    files = [home / "release", home / "lib" / "server" / "libjvm.so", *map(Path, class_path)]
    return hashlib.sha256("\n".join(line for file in files for line in _identity(file)).encode()).hexdigest()[:16]


def _identity(file: Path) -> Iterator[str]:
    yield str(file)
    with suppress(OSError):  # a folder or file of a class path does not need to exist
        status = file.stat()
        yield f"{status.st_size} {int(status.st_mtime)}"
