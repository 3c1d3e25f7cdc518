"""Who may ask on the HTTP port, and how: TLS, and names with passwords.

1. The users' file has a line `name:hash` for each, bcrypt as `htpasswd -B` writes it. Empty lines and `#` lines are
   passed over. Any other hash is refused: it would be guessed too fast.
2. The users' file and the private key must be private (`config/private_files.py`).
3. An unknown name costs one hash of the cost that one of the file's users has, always the same user for the same name:
   time shows neither that a name is unknown nor that its cost is not the file's. A pair that was right is remembered by
   its digest, so a scrape does not cost a tenth of a second each time. One password is tried at a time: guessing takes
   one core at most.
4. A renewed certificate is used from the next connection on. It is loaded with its key into a context of its own, so a
   certificate that does not fit the key leaves the old pair in use; the log says that once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
import secrets
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path

import bcrypt

from streaming.config.private_files import refusal_reason
from streaming.errors import RemedyError

_BCRYPT_STARTS = (b"$2a$", b"$2b$", b"$2y$")
_BCRYPT_CHARACTERS = 60
_COST = slice(0, 7)
_NO_PASSWORD = b"." * 53
_KEPT_PAIRS = 64

_log = logging.getLogger(__name__)


class AccessError(RemedyError):
    """A certificate, key or users' file that cannot be used."""


class Users:
    """Names and the bcrypt hashes of their passwords."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self._hashes = hashes
        self._decoys = [expected[_COST] + _NO_PASSWORD for _, expected in sorted(hashes.items())]
        self._decoy_key = hashlib.sha256(b"".join(self._decoys + sorted(hashes.values()))).digest()
        self._salt = secrets.token_bytes(16)
        self._right: set[bytes] = set()
        self._lock = threading.Lock()

    def admits(self, authorization: str | None) -> bool:
        """Whether an Authorization header names a user and their password."""
        pair = _name_and_password(authorization)
        if pair is None:
            return False
        name, password = pair
        digest = hmac.new(self._salt, b"%d:%b:%b" % (len(name), name, password), hashlib.sha256).digest()
        if digest in self._right:
            return True
        expected = self._hashes.get(name.decode("utf-8", "surrogateescape"))
        with self._lock:
            is_right = _is_password(password, expected or self._decoy(name)) and expected is not None
            if is_right and len(self._right) < _KEPT_PAIRS:
                self._right.add(digest)
        return is_right

    def _decoy(self, name: bytes) -> bytes:
        """A hash for a name that nobody has. A restart does not change it: a change would show that nobody has it."""
        chosen = int.from_bytes(hmac.new(self._decoy_key, name, hashlib.sha256).digest()[:8], "big")
        return self._decoys[chosen % len(self._decoys)]


def _name_and_password(authorization: str | None) -> tuple[bytes, bytes] | None:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if colon else None


def _is_password(password: bytes, expected: bytes) -> bool:
    try:
        return bcrypt.checkpw(password, expected)
    except ValueError:  # longer than bcrypt's 72 bytes, or with a zero byte: nobody's
        return False


def read_users(file: str) -> Users:
    """The users of a file. Raises AccessError for one that is no such file, or that others may read or write."""
    _check_private(file)
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{file} cannot be read ({error}): write it by `htpasswd -B -c {file} NAME`") from None
    hashes = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, expected = line.strip().partition(":")
        hashes[name] = expected.encode()
        if not name or not expected.encode().startswith(_BCRYPT_STARTS) or len(expected) != _BCRYPT_CHARACTERS:
            raise AccessError(f"{file}, line {number}: not NAME:BCRYPT-HASH: write it by `htpasswd -B {file} NAME`")
    if not hashes:
        raise AccessError(f"{file} names nobody: write it by `htpasswd -B {file} NAME`")
    return Users(hashes)


class Certificate:
    """A certificate with its key, as the server shows it. Raises AccessError for files that are none."""

    def __init__(self, certificate_file: str, key_file: str) -> None:
        self._files = (certificate_file, key_file)
        self._changed = self._changes()
        self._context = _loaded(*self._files)

    def context(self) -> ssl.SSLContext:
        """What the next connection is made with (rule 4)."""
        changed = self._changes()
        if changed != self._changed:
            self._changed = changed
            try:
                self._context = _loaded(*self._files)
                _log.info("the certificate of the HTTP port was renewed")
            except AccessError as error:
                _log.warning("the renewed certificate cannot be used, the old one stays: %s", error)
        return self._context

    def _changes(self) -> tuple[tuple[int, ...], ...]:
        try:
            found = [os.stat(file) for file in self._files]  # noqa: PTH116 - called for each connection
        except OSError:
            return ()
        return tuple((file.st_mtime_ns, file.st_ino, file.st_size) for file in found)


def _loaded(certificate_file: str, key_file: str) -> ssl.SSLContext:
    _check_private(key_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate_file, key_file, password=_no_password)
    except (OSError, ValueError) as error:
        raise AccessError(
            f"{certificate_file} and {key_file} are no certificate and its key ({error}): both as PEM are wanted"
        ) from None
    return context


def _no_password() -> str:
    """Without this, OpenSSL asks for the password of an encrypted key at the terminal, and waits."""
    raise ValueError("the key is encrypted: take the password off it")


def _check_private(file: str) -> None:
    try:
        reason = refusal_reason(Path(file))
    except OSError as error:
        raise AccessError(f"{file} cannot be read ({error.strerror}): name a file that is there") from None
    if reason is not None:
        raise AccessError(reason)
