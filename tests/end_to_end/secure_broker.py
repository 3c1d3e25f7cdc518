"""Run a real broker with authentication and authorization.

Its certificates, users, tokens and ACLs are for tests only. The tests use the plain listener as Kafka's super user.
The other two listeners are for the monitor: `SECURE` is SASL_SSL with every mechanism, and `MUTUAL` is SSL and requires
a client certificate. The monitor is `User:monitor` on both.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.conftest import QUICK_BROKER
from tests.streaming.security.pem import USER, pkcs8, write_pem_files

PASSWORD = 'tall\\ "hedge", ${file:/etc/passwd:x}; ü='  # noqa: S105 - characters that parsers may handle wrongly
CLIENT_SECRET = "green=river"  # noqa: S105 - for the token endpoint of this test
_SECURITY = "org.apache.kafka.common.security"
_AUDIENCE = "kafka"

Permission = tuple[ResourceType, str, ACLOperation]

LEAST_PERMISSIONS: Sequence[Permission] = (
    (ResourceType.TOPIC, "__consumer_offsets", ACLOperation.READ),
    (ResourceType.TOPIC, "*", ACLOperation.DESCRIBE),
    (ResourceType.GROUP, "*", ACLOperation.DESCRIBE),
    (ResourceType.CLUSTER, "kafka-cluster", ACLOperation.DESCRIBE),
)
"""Permissions that the monitor needs, as in the README."""
ADMIN_API_PERMISSIONS = LEAST_PERMISSIONS[1:]
"""Permissions that the monitor needs with `source.kind = "admin-api"`."""


@dataclass
class SecureBroker:
    """The broker, and the folder with the files of its clients."""

    broker: EmbeddedBroker
    folder: Path
    token_endpoint: str

    def grant(self, permissions: Sequence[Permission], user: str = USER) -> None:
        """Allow a user these permissions."""
        with self.admin() as admin:
            admin.create_acls([_acl(user, permission) for permission in permissions])

    def deny(self, permission: Permission, user: str) -> None:
        """Deny a user a permission that a wider rule grants."""
        with self.admin() as admin:
            admin.create_acls([_acl(user, permission, ACLPermissionType.DENY)])

    @contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """Open an admin client as the super user."""
        with closing(KafkaAdminClient(bootstrap_servers=self.broker.bootstrap_servers)) as admin:
            yield admin

    def add_user(self, user: str, password: str) -> None:
        """Add a user to both SCRAM mechanisms."""
        with self.admin() as admin:
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                credential = UserScramCredentialUpsertion(user, mechanism, password=password, iterations=8192)
                assert admin.alter_user_scram_credentials([credential]) == {user: None}


def _acl(user: str, permission: Permission, kind: ACLPermissionType = ACLPermissionType.ALLOW) -> ACL:
    resource_type, name, operation = permission
    pattern = ResourcePattern(resource_type, name, ACLResourcePatternType.LITERAL)
    return ACL(f"User:{user}", "*", operation, kind, pattern)


@contextmanager
def secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """Run the broker with one user that has no permission yet."""
    folder.mkdir()
    authority = trustme.CA()
    write_pem_files(folder, authority)
    trustme.CA().cert_pem.write_to_path(folder / "another-ca.pem")
    _write_key_and_certificate(authority.issue_cert("127.0.0.1"), folder / "server.pem")
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong-password").write_text("a wrong guess\n")
    for name in ("password", "wrong-password"):
        (folder / name).chmod(0o600)
    signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (folder / "jwks.json").write_text(json.dumps(_jwks(signing_key)))
    with _token_endpoint(authority, signing_key) as endpoint, pytest.MonkeyPatch.context() as environment:
        jwks = f"file:{folder / 'jwks.json'}"
        # Since 4.0, brokers load keys only from URLs and files in these Java properties (CVE-2025-27817).
        allowed = {"urls": jwks, "files": folder / "jwks.json"}
        options = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{kind}={where}" for kind, where in allowed.items())
        environment.setenv("JAVA_TOOL_OPTIONS", " ".join(options))
        with EmbeddedBroker(
            folder / "broker",
            properties={**QUICK_BROKER, **_properties(folder, jwks)},
            more_listeners={"SECURE": "SASL_SSL", "MUTUAL": "SSL"},
        ) as broker:
            secure = SecureBroker(broker, folder, endpoint)
            secure.add_user(USER, PASSWORD)
            yield secure


def _properties(folder: Path, jwks: str) -> dict[str, str]:
    secure = "listener.name.secure"
    # A broker reads its properties as Latin-1. In JAAS a character can be written as its octal number.
    password = json.dumps(PASSWORD, ensure_ascii=False).replace("ü", "\\374")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{secure}.plain.sasl.jaas.config": f"{_SECURITY}.plain.PlainLoginModule required user_{USER}={password};",
        f"{secure}.scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
        f"{secure}.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
        f"{secure}.oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        f"{secure}.oauthbearer.sasl.server.callback.handler.class": (
            f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": jwks,
        "sasl.oauthbearer.expected.audience": _AUDIENCE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def _write_key_and_certificate(issued: trustme.LeafCert, file: Path) -> None:
    """Write a key store for Kafka: the key as PKCS#8, then the certificates."""
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    file.write_bytes(pkcs8(issued, serialization.NoEncryption()) + chain)


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _jwks(key: rsa.RSAPrivateKey) -> Mapping[str, object]:
    """Return the public key as a JWK Set (RFC 7517)."""
    numbers = key.public_key().public_numbers()
    n, e = (_base64url(number.to_bytes((number.bit_length() + 7) // 8, "big")) for number in (numbers.n, numbers.e))
    return {"keys": [{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": n, "e": e}]}


def _token(key: rsa.RSAPrivateKey, life_seconds: int) -> str:
    """Return a signed JWT (RFC 7519) for the monitor's user."""
    now = int(time.time())
    claims = {"sub": USER, "aud": _AUDIENCE, "scope": "read", "iat": now, "exp": now + life_seconds}
    parts = ({"alg": "RS256", "kid": "1"}, claims)
    signed = ".".join(_base64url(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_base64url(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@contextmanager
def _token_endpoint(authority: trustme.CA, key: rsa.RSAPrivateKey) -> Iterator[str]:
    """Run an HTTPS endpoint that returns tokens to clients with the right secret. Yield its URL."""
    expected = "Basic " + base64.b64encode(f"{USER}:{CLIENT_SECRET}".encode()).decode()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            is_known = self.headers["Authorization"] == expected and "grant_type=client_credentials" in form
            self.send_response(200 if is_known else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": _token(key, 600), "expires_in": 600}).encode() * is_known)

        def log_message(self, *_: object) -> None: ...

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}/token"
        server.shutdown()
