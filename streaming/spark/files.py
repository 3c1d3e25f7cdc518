"""Read and write small files with Hadoop's client, on any file system that Spark supports. Writes are atomic."""

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
    """The files below one root URI.

    Names are relative to the root and use `/` as the separator. Errors of Hadoop are raised as OSError.
    """

    def __init__(self, session: SparkSession, root: str) -> None:
        self._jvm = session.sparkContext._jvm  # noqa: SLF001 - Spark's documented way to Hadoop's API from Python
        self._root = root.rstrip("/")
        hadoop_conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._fs: JavaObject = self._path("").getFileSystem(hadoop_conf)

    def _path(self, name: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{name}" if name else self._root)  # type: ignore[union-attr]

    @contextmanager
    def _raising_os_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            text = str(error.java_exception)
            number = next((number for words, number in _ERROR_NUMBERS.items() if words in text), errno.EIO)
            raise OSError(number, text.partition("\n")[0], self.uri(name)) from None

    def uri(self, name: str) -> str:
        """Return the full URI of a name."""
        return f"{self._root}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Return None if the file does not exist."""
        path = self._path(name)
        with self._raising_os_errors(name):
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file under a temporary name, then rename the file. If the target file exists, it is replaced."""
        partial = self._path(f"{name.rpartition('/')[0]}/.{uuid.uuid4().hex}.partial".lstrip("/"))
        target = self._path(name)
        with self._raising_os_errors(name):
            stream = self._fs.create(partial, True)
            try:
                stream.write(content)
            finally:
                stream.close()
            self._fs.delete(target, False)
            if not self._fs.rename(partial, target):
                raise OSError(errno.EIO, "cannot be written", self.uri(name))

    def delete(self, name: str) -> None:
        """Delete the file if it exists."""
        with self._raising_os_errors(name):
            self._fs.delete(self._path(name), False)

    def make_folder(self, name: str) -> None:
        """Create a folder and its parents if they do not exist."""
        with self._raising_os_errors(name):
            self._fs.mkdirs(self._path(name))

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the entries of a folder. The result is empty if the folder does not exist."""
        path = self._path(folder)
        with self._raising_os_errors(folder):
            if not self._fs.exists(path):
                return []
            return sorted(status.getPath().getName() for status in self._fs.listStatus(path))

    def exists(self) -> bool:
        """Return True if the root exists."""
        with self._raising_os_errors(""):
            return bool(self._fs.exists(self._path("")))

    def move_to(self, root: str) -> None:
        """Rename the root. After that, names are relative to the new root."""
        target = self._jvm.org.apache.hadoop.fs.Path(root)  # type: ignore[union-attr]
        with self._raising_os_errors(""):
            if not self._fs.rename(self._path(""), target):
                raise OSError(errno.EIO, f"cannot be renamed to {root}", self._root)
        self._root = root.rstrip("/")

    def remove(self) -> None:
        """If the root exists, delete the root and its content."""
        with self._raising_os_errors(""):
            self._fs.delete(self._path(""), True)
