"""Create real PEM files for the tests of the settings."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

USER = "monitor"
KEY_PASSWORD = "narrow: gate"  # noqa: S105 - of a key made for a test


def write_pem_files(folder: Path, authority: trustme.CA) -> None:
    """Write `ca.pem`, `client.pem`, and the client's key in three forms.

    `client.key` has no password, `locked.key` has one, and `openssl.key` is not PKCS#8.
    """
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
    """Return a certificate's private key as PKCS#8, the only form that Java reads."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
