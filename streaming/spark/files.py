"""Read and write small files with Hadoop's client, on any file system that Spark supports.

A write is atomic. If the process is killed during a write, the file has either its old or its new content.

1. On a local disk and in HDFS, `write` writes `.NAME.partial` and renames it, which replaces the old file in one step.
   In HDFS, Hadoop's `FileContext` renames the file. On a local disk, Python renames the file, because Hadoop's clients
   cannot replace a local file in one step. The old checksum file is deleted first, because the new file would be
   invalid with the checksums of the old content.
2. If the process is killed, `.NAME.partial` can remain. If `NAME` is never written again, the next start must remove
   this file (`remove_partial_files`).
3. An object store has no atomic rename, but stores a file only when it is closed. So `write` writes directly to any
   storage except a local disk or HDFS.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streaming.spark.checksums import checksum_name

_PARTIAL = ".partial"
_HDFS = frozenset({"hdfs", "viewfs"})
_ERROR_NUMBERS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "AccessControlException": errno.EACCES,
}


class Files:
    """The files below one root URI, as in `Folder`. Errors of Hadoop are raised as OSError."""

    def __init__(self, session: SparkSession, root: str) -> None:
        jvm = session.sparkContext._jvm  # noqa: SLF001 - Spark's documented way to Hadoop's API from Python
        # For each part of `org.apache.hadoop.fs`, Java searches all its jars for a class of this name. So do it once.
        hadoop = jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        self._path_class = hadoop.Path
        self._root = root.rstrip("/")
        hadoop_conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._fs: JavaObject = self._path("").getFileSystem(hadoop_conf)
        self._scheme: str = self._fs.getUri().getScheme()
        self._is_object_store = self._scheme not in {"file", *_HDFS}
        if self._scheme in _HDFS:
            self._context: JavaObject = hadoop.FileContext.getFileContext(self._fs.getUri(), hadoop_conf)
            options = getattr(hadoop, "Options$Rename")
            self._replacing = session.sparkContext._gateway.new_array(options, 1)  # type: ignore[union-attr] # noqa: SLF001 - as above
            self._replacing[0] = options.OVERWRITE

    def _path(self, name: str) -> JavaObject:
        return self._path_class(f"{self._root}/{name}" if name else self._root)

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
        """Write a file. If the file exists, it is replaced (rules 1 to 3)."""
        folder, slash, file = name.rpartition("/")
        target = self._path(name)
        with self._raising_os_errors(name):
            if self._is_object_store:
                self._put(target, content)
                return
            partial = self._path(f"{folder}{slash}.{file}{_PARTIAL}")
            self._put(partial, content)
            self._fs.delete(self._path(checksum_name(name)), False)
            if self._scheme in _HDFS:
                self._context.rename(partial, target, self._replacing)
            else:
                local, replaced = partial.toUri().getPath(), target.toUri().getPath()
                Path(local).replace(replaced)
                with suppress(FileNotFoundError):  # Hadoop may be configured to write no checksums
                    Path(checksum_name(local)).replace(checksum_name(replaced))

    def _put(self, path: JavaObject, content: bytes) -> None:
        stream = self._fs.create(path, True)
        try:
            stream.write(content)
        except Py4JJavaError:
            if self._is_object_store:
                with suppress(Py4JJavaError):
                    stream.abort()  # a close would store half of the content
            raise
        finally:
            stream.close()

    def remove_partial_files(self, folder: str) -> None:
        """Remove the files of interrupted writes from a folder (rule 2). No other thread may write to the folder."""
        for name in self.names(folder):
            if name.endswith(_PARTIAL):
                self.delete(f"{folder}/{name}")

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
        target = self._path_class(root)
        with self._raising_os_errors(""):
            if not self._fs.rename(self._path(""), target):
                raise OSError(errno.EIO, f"cannot be renamed to {root}", self._root)
        self._root = root.rstrip("/")

    def remove(self) -> None:
        """If the root exists, delete the root and its content."""
        with self._raising_os_errors(""):
            self._fs.delete(self._path(""), True)
