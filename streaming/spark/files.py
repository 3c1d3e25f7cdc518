"""Small files on whatever file system Spark can reach, through Hadoop's own client: whole or not at all."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_ERROR_NUMBERS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "AccessControlException": errno.EACCES,
}


class Files:
    """Files below one root URI. Names are relative, with `/`. What Hadoop refuses is an OSError."""

    def __init__(self, session: SparkSession, root: str) -> None:
        self._jvm = session.sparkContext._jvm  # noqa: SLF001 - Spark's documented way to Hadoop's API from Python
        self._root = root.rstrip("/")
        hadoop_conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._fs: JavaObject = self._path("").getFileSystem(hadoop_conf)

    def _path(self, name: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{name}" if name else self._root)  # type: ignore[union-attr]

    @contextmanager
    def _failing_as_os_error(self, name: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            said = str(error.java_exception)
            number = next((number for words, number in _ERROR_NUMBERS.items() if words in said), errno.EIO)
            raise OSError(number, said.partition("\n")[0], self.uri(name)) from None

    def uri(self, name: str) -> str:
        """The full URI of a name."""
        return f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        """The file's bytes; None where there is none."""
        path = self._path(name)
        with self._failing_as_os_error(name):
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Put the file there at one stroke, in place of an older one."""
        partial = self._path(f"{name.rpartition('/')[0]}/.{uuid.uuid4().hex}.partial".lstrip("/"))
        target = self._path(name)
        with self._failing_as_os_error(name):
            stream = self._fs.create(partial, True)
            try:
                stream.write(content)
            finally:
                stream.close()
            self._fs.delete(target, False)
            if not self._fs.rename(partial, target):
                raise OSError(errno.EIO, "cannot be written", self.uri(name))

    def delete(self, name: str) -> None:
        """Remove the file; fine if there is none."""
        with self._failing_as_os_error(name):
            self._fs.delete(self._path(name), False)

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it; fine if it is there."""
        with self._failing_as_os_error(name):
            self._fs.mkdirs(self._path(name))

    def names(self, folder: str) -> list[str]:
        """Names of the entries of a folder, sorted; none where there is no such folder."""
        path = self._path(folder)
        with self._failing_as_os_error(folder):
            if not self._fs.exists(path):
                return []
            return sorted(status.getPath().getName() for status in self._fs.listStatus(path))

    def exists(self) -> bool:
        """Whether the root is there."""
        with self._failing_as_os_error(""):
            return bool(self._fs.exists(self._path("")))

    def move_to(self, root: str) -> None:
        """Rename the root itself. Its files are known by the new root from then on."""
        target = self._jvm.org.apache.hadoop.fs.Path(root)  # type: ignore[union-attr]
        with self._failing_as_os_error(""):
            if not self._fs.rename(self._path(""), target):
                raise OSError(errno.EIO, f"cannot be renamed to {root}", self._root)
        self._root = root.rstrip("/")

    def remove(self) -> None:
        """Remove the root with all that is in it; fine if it is not there."""
        with self._failing_as_os_error(""):
            self._fs.delete(self._path(""), True)
