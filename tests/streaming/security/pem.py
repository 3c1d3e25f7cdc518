"""PEM files for tests of the settings: real ones, made once."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

USER = "monitor"
KEY_PASSWORD = "narrow: gate"  # noqa: S105 - of a key made for a test


def write_pem_files(folder: Path, authority: trustme.CA) -> None:
    """Write `ca.pem`, `client.pem` its key as `client.key` and `locked.key`, and not as PKCS#8 in `openssl.key`."""
    issued = authority.issue_cert("monitor.test", common_name=USER)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    (folder / "client.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    locked = serialization.BestAvailableEncryption(KEY_PASSWORD.encode())
    (folder / "client.key").write_bytes(pkcs8(issued, serialization.NoEncryption()))
    (folder / "locked.key").write_bytes(pkcs8(issued, locked))
    issued.private_key_pem.write_to_path(folder / "openssl.key")
    for key in folder.glob("*.key"):
        key.chmod(0o600)


def pkcs8(issued: trustme.LeafCert, encryption: serialization.KeySerializationEncryption) -> bytes:
    """A certificate's private key in the one form that Java reads."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
