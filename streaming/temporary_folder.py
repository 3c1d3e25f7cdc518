"""Report a folder for temporary files that cannot be used in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streaming.errors import STAYS, RemedyError


class TemporaryFolderError(RemedyError):
    """Error: no temporary file can be created."""

    exit_code = STAYS


@contextmanager
def raising_temporary_folder_error() -> Iterator[None]:
    """Convert an OSError to a TemporaryFolderError. The `with` block may use only temporary files.

    Python looks for a writable folder: TMPDIR, /tmp, /var/tmp, /usr/tmp and the current folder. If the disk of a folder
    is full, Python uses the next folder.
    """
    try:
        yield
    except OSError as error:
        raise TemporaryFolderError(
            f"temporary files cannot be created ({error.strerror}): make /tmp writable and make space on its disk, or"
            " set TMPDIR to a writable folder"
        ) from error
