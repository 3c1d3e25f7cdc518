"""Protects the HTTP port with TLS and with user names and passwords.

1. The users file has one line `name:hash` per user. The hash is a bcrypt hash in the format of `htpasswd -B`. The
   monitor rejects all other hashes, because they are faster to compute than bcrypt hashes. So an attacker could try
   more passwords per second. The monitor ignores empty lines and lines that start with `#`.
2. The monitor refuses a users file or a private key that other users can read or write. `config/private_files.py`
   describes two cases in which other users may read the file.
3. For an unknown name, the server checks the password against a bcrypt hash of equal cost. All requests with the same
   unknown name use the same bcrypt hash. So an attacker cannot learn from the response time which names exist. If a
   name and a password are correct, the server stores a digest of both in memory. Without these digests, each scrape
   would take 0.1 s longer. The server checks one password at a time. So an attacker who guesses passwords uses at most
   one CPU core.
4. If the certificate file or the key file changes, the next connection uses the new files. If the users file changes,
   the next request uses the new file. If the new files cannot be used, the server logs one warning and continues to use
   the old content.
5. Some programs write a file in several steps, for example first the certificate and then its chain. So the server
   loads changed files only after `SETTLE_SECONDS` without a further change. If a file changes while the server loads
   it, the server continues to use the old content.
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
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import bcrypt

from streaming.config.private_files import refusal_reason, shown_file
from streaming.config.settings import MetricsSettings
from streaming.errors import STAYS, RemedyError

_BCRYPT_STARTS = (b"$2a$", b"$2b$", b"$2y$")
_BCRYPT_CHARACTERS = 60
_COST = slice(0, 7)
_NO_PASSWORD = b"." * 53
_MAX_REMEMBERED_PAIRS = 64
SETTLE_SECONDS = 2.0

_log = logging.getLogger(__name__)

T = TypeVar("T")


class AccessError(RemedyError):
    """Error: a certificate file, key file or users file cannot be used."""

    exit_code = STAYS


class Users:
    """User names and the bcrypt hashes of their passwords."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self._hashes = hashes
        self._decoys = [expected[_COST] + _NO_PASSWORD for _, expected in sorted(hashes.items())]
        self._decoy_key = hashlib.sha256(b"".join(self._decoys + sorted(hashes.values()))).digest()
        self._salt = secrets.token_bytes(16)
        self._correct_digests: set[bytes] = set()
        self._lock = threading.Lock()

    def admits(self, authorization: str | None) -> bool:
        """Return True if the Authorization header contains the name and the correct password of a user."""
        pair = _name_and_password(authorization)
        if pair is None:
            return False
        name, password = pair
        digest = hmac.new(self._salt, b"%d:%b:%b" % (len(name), name, password), hashlib.sha256).digest()
        if digest in self._correct_digests:
            return True
        expected = self._hashes.get(name.decode("utf-8", "surrogateescape"))
        with self._lock:
            is_correct = _is_password(password, expected or self._decoy(name)) and expected is not None
            if is_correct and len(self._correct_digests) < _MAX_REMEMBERED_PAIRS:
                self._correct_digests.add(digest)
        return is_correct

    def _decoy(self, name: bytes) -> bytes:
        """Return the hash with which the password for an unknown name is compared.

        A name always gets the same hash, even after a restart.
        """
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
    except ValueError:  # longer than bcrypt's 72 bytes, or with a zero byte: no user has such a password
        return False


def read_users(file: str) -> Users:
    """Read a users file. Raises AccessError if the file is not valid, or if the monitor refuses the file (rule 2)."""
    _check_private(file, "metrics.basic_auth_users_file")
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{file} cannot be read ({error}): create it with `htpasswd -B -c {file} NAME`") from None
    hashes = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, expected = line.strip().partition(":")
        hashes[name] = expected.encode()
        if not name or not expected.encode().startswith(_BCRYPT_STARTS) or len(expected) != _BCRYPT_CHARACTERS:
            raise AccessError(
                f"{file}, line {number} is not NAME:BCRYPT-HASH: write the line with `htpasswd -B {file} NAME`"
            )
    if not hashes:
        raise AccessError(f"{file} contains no user: add one with `htpasswd -B {file} NAME`")
    return Users(hashes)


class Reloaded(Generic[T]):
    """The content of files, which is loaded again after a change (rules 4 and 5). `load` raises AccessError."""

    def __init__(self, name: str, load: Callable[..., T], *files: str) -> None:
        self._name = name
        self._load = load
        self._files = files
        self._lock = threading.Lock()
        self._loaded_versions = self._file_versions()
        self._content = load(*files)

    def current(self) -> T:
        """Return the content of the files. Several threads can call this method."""
        versions = self._file_versions()
        if versions != self._loaded_versions and _has_settled(versions):
            with self._lock:
                if versions != self._loaded_versions:
                    self._reload(versions)
        return self._content

    def _reload(self, versions: tuple[_FileVersion, ...]) -> None:
        try:
            content = self._load(*self._files)
            if versions != self._file_versions():
                return
            self._content = content
            _log.info("the %s of the HTTP port was renewed", self._name)
        except AccessError as error:
            _log.warning("the renewed %s cannot be used. The old %s stays in use: %s", self._name, self._name, error)
        self._loaded_versions = versions

    def _file_versions(self) -> tuple[_FileVersion, ...]:
        try:
            stats = [os.stat(file) for file in self._files]  # noqa: PTH116 - called for each connection
        except OSError:
            return ()
        return tuple(_FileVersion(one.st_ctime_ns, one.st_mtime_ns, one.st_ino, one.st_size) for one in stats)


@dataclass(frozen=True, slots=True)
class Access:
    """The protection of the port: an optional certificate for TLS and optional users for basic authentication."""

    certificate: Reloaded[ssl.SSLContext] | None = None
    users: Reloaded[Users] | None = None


UNPROTECTED = Access()


def read_access(metrics: MetricsSettings) -> Access:
    """Read the files of the port. Raises AccessError if one of the files cannot be used."""
    certificate = users = None
    if metrics.tls_key_file:
        certificate = Reloaded("certificate", _load_context, metrics.tls_certificate_file, metrics.tls_key_file)
    if metrics.basic_auth_users_file:
        users = Reloaded("users file", read_users, metrics.basic_auth_users_file)
    return Access(certificate, users)


class _FileVersion(NamedTuple):
    """The attributes of a file. At least one of them changes if the content or the mode changes."""

    changed_ns: int
    modified_ns: int
    inode: int
    size_bytes: int


def _has_settled(versions: Sequence[_FileVersion]) -> bool:
    """Return True if no file changed in the last SETTLE_SECONDS (rule 5). Ignore change times in the future."""
    now_ns = time.time_ns()
    return not any(0 <= now_ns - version.changed_ns < SETTLE_SECONDS * 1e9 for version in versions)


def _load_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    _check_private(key_file, "metrics.tls_key_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate_file, key_file, password=_no_password)
    except (OSError, ValueError) as error:
        shown = shown_file(certificate_file, "the file in metrics.tls_certificate_file")
        raise AccessError(
            f"{shown} and {key_file} are not a certificate and its key ({error}): use two PEM files that belong"
            " together"
        ) from None
    return context


def _no_password() -> str:
    """Reject an encrypted key. Without this function, OpenSSL would ask for a password on the terminal."""
    raise ValueError("the key is encrypted: remove its password")


def _check_private(file: str, setting: str) -> None:
    try:
        reason = refusal_reason(Path(file))
    except OSError as error:
        shown = shown_file(file, f"the file in {setting}")
        raise AccessError(f"{shown} cannot be read ({error.strerror}): specify a file that exists") from None
    if reason is not None:
        raise AccessError(reason)
