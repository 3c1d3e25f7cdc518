"""Find the class archive of a JVM (JEP 350). Provide the JVM options that use or write a class archive.

`class_archive_training.py` creates the archives.

1. A class archive contains the parsed and verified classes of an earlier run. A JVM with an archive does not read the
   class files again.
2. Each archive is valid for only one Java installation and one class path. So the file name of the archive contains a
   hash of the Java installation and the class path. Without an archive, the JVM starts normally.
3. A truncated archive ends the JVM with SIGBUS, even with `-Xshare:auto` and a checksum check. So the file name also
   contains the size of the complete file. A file with a different size is not used.
4. The archive contains the version of the JVM, and the size and modification time of each jar. If a jar or the JVM has
   changed, the JVM does not use the archive. With `-XX:+VerifySharedSpaces`, the JVM also verifies the checksums of the
   archive. Without `-XX:+VerifySharedSpaces`, a corrupt archive ends the JVM with SIGSEGV. The check of the checksums
   needs 0.04 CPU seconds for the archive of Spark. The JVM ignores an invalid archive and prints no message.
5. The archives of one Python environment are in one folder of the cache. A new archive replaces the older archives of
   the same program (Spark or the broker).
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
"""Name of the folder in the cache that contains the class archives of all Python environments."""

Kind = Literal["spark", "broker"]

_QUIETLY_IF_IT_FITS = ("-Xshare:auto", "-XX:+VerifySharedSpaces", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def writes_archive(options: Sequence[str]) -> bool:
    """Return True if the JVM options write an archive."""
    return any(option.startswith("-XX:ArchiveClassesAtExit") for option in options)


def recording_options(partial: Path) -> list[str]:
    """Return the JVM options that write an archive to the file `partial` when the JVM ends."""
    return [f"-XX:ArchiveClassesAtExit={partial}", "-Xlog:disable"]


class ClassArchive:
    """The class archive of Spark or of the broker. `class_path` has the same order as on the command line."""

    def __init__(self, kind: Kind, java: Path, class_path: Sequence[str]) -> None:
        self._kind = kind
        self._name = f"{kind}-{_fingerprint(java, class_path)}"

    def find(self) -> Path | None:
        """Return the path of the complete archive, or None if no complete archive exists (rules 2 and 3)."""
        paths = archives_folder().glob(f"{self._name}-*.jsa")
        return next((path for path in paths if path.name == _file_name(self._name, path)), None)

    @property
    def options(self) -> list[str]:
        """Return the JVM options that use the archive. Return an empty list if there is no archive."""
        path = self.find()
        return [f"-XX:SharedArchiveFile={path}", *_QUIETLY_IF_IT_FITS] if path else []

    def publish(self, partial: Path) -> None:
        """Rename the complete archive `partial` to its final name. Remove older archives (rule 5)."""
        path = archives_folder() / _file_name(self._name, partial)
        older = [other for other in archives_folder().glob(f"{self._kind}-*.jsa") if other != path]
        partial.replace(path)
        for other in older:
            with suppress(OSError):
                other.unlink()


def _file_name(name: str, content: Path) -> str:
    try:
        size_bytes = content.stat().st_size
    except FileNotFoundError:
        size_bytes = 0
    return f"{name}-{size_bytes}.jsa"


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
    with suppress(OSError):  # a class path can contain files and folders that do not exist
        status = file.stat()
        yield f"{status.st_size} {int(status.st_mtime)}"
