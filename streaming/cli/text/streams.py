"""Report an error of standard input or standard output in one line, for all commands.

If a standard stream is closed, Python sets it to None. Then click prints nothing and reports no error, and all other
libraries end with a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDIN, _STDOUT, _STDERR = range(3)


def replace_streams() -> None:
    """Replace standard output, and standard input if it is closed.

    Then each failed read or write raises click.ClickException. A group can have any name. So if the encoding of
    standard output has no code for a character, the output contains an escape sequence instead.
    """
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        _keep_free(descriptor)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()))
    old = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(_STDOUT, "w", closefd=False)),
        encoding=old.encoding if old else "utf-8",
        errors="backslashreplace",
        line_buffering=bool(old and old.line_buffering),
    )


def input_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield each line. A binary file is split only at line feeds, never at U+2028 in a name.

    Raises click.ClickException if the file cannot be read.
    """
    try:
        yield from file
    except OSError as error:
        raise click.ClickException(f"{file.name} cannot be read ({error.strerror}): check the file") from error


def _keep_free(descriptor: int) -> None:
    """Open /dev/null if the stream is closed. Otherwise, the next file that is opened would become the stream."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDONLY if descriptor == _STDOUT else os.O_WRONLY)


class _ClosedInput(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: object) -> int:
        raise click.ClickException("standard input is closed: specify a file")


class _Output(io.FileIO):
    """Standard output. After the first error, all output is discarded, so that the process ends without more errors."""

    _has_failed = False

    def write(self, data: ReadableBuffer) -> int:
        """Write the data. Raises click.ClickException. Raises BrokenPipeError if the reader of a pipe has ended."""
        if self._has_failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self._has_failed = True
            if isinstance(error, BrokenPipeError):  # click then ends the process without a message
                raise
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise click.ClickException(
                f"standard output cannot be written ({reason}): redirect it to a different file"
            ) from error
