"""`kafka.security`: authentication and encryption between the monitor and the brokers.

Rules. Each violation is an error of one line at start:

1. A setting that the protocol or the mechanism does not use is an error. It would promise security that is not there.
2. A mechanism has all its settings: PLAIN and SCRAM a user name and a password; OAUTHBEARER endpoint, id and secret.
3. A secret is set once: as a value (best from the environment) or as a file.
4. A file in a setting exists, can be read and is not empty.
5. The client's private key is PKCS#8 in PEM. Java reads no other format.
6. A file with a secret or the private key is closed to other users (`private_files`).
7. A key's password is set if, and only if, the key has one. If not, OpenSSL would ask for it at the terminal and wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from typing_extensions import Self

from streaming.config.private_files import refusal
from streaming.config.section import Section

_PKCS8 = re.compile(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----")
_OF_TLS = ("ca_file", "verify_hostname", "certificate_file", "key_file", "key_password", "key_password_file")
_OF_PASSWORD = ("username", "password", "password_file")
_OF_OAUTH = (
    "oauth_token_endpoint",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_client_secret_file",
    "oauth_scope",
    "oauth_ca_file",
)


def _is_readable(path: Path) -> Path:
    known = path.expanduser().absolute()
    if set(str(known)) & set(":}"):
        raise ValueError(f"{known}: Kafka's Java client takes no path with a colon or a brace")
    try:
        content = known.read_text("utf-8")
    except OSError as unreadable:
        raise ValueError(f"{known}: {(unreadable.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{known} is not text: PEM is wanted, not DER or a Java keystore") from None
    if not content.strip():
        raise ValueError(f"{known} is empty")
    return known


def _is_private(path: Path) -> Path:
    known = _is_readable(path)
    if reason := refusal(known):
        raise ValueError(reason)
    return known


def _is_pem(path: Path) -> Path:
    if "-----BEGIN CERTIFICATE-----" not in _is_readable(path).read_text():
        raise ValueError(f"{path} has no certificate in PEM")
    return _is_readable(path)


def _is_pkcs8(path: Path) -> Path:
    if not _PKCS8.search(_is_readable(path).read_text()):
        raise ValueError(f"{path} is no PKCS#8 key in PEM: make it one with `openssl pkcs8 -topk8 -in {path}`")
    return _is_private(path)


def _without_user(url: str) -> str:
    if "@" in url.partition("://")[2]:
        raise ValueError("no user or password belongs here: set oauth_client_id and oauth_client_secret")
    return url


SecretFile = Annotated[Path, AfterValidator(_is_private)]
CertificateFile = Annotated[Path, AfterValidator(_is_pem)]
KeyFile = Annotated[Path, AfterValidator(_is_pkcs8)]
TokenEndpoint = Annotated[str, AfterValidator(_without_user)]


class SecuritySettings(Section):
    """Authentication and encryption between the monitor and the brokers, for Spark's Kafka source and all requests."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="Kafka's security.protocol. SSL and SASL_SSL encrypt all connections."
    )
    ca_file: CertificateFile | None = Field(
        None,
        description="PEM file with the CA certificates that sign the brokers' certificates. If not set: the CA"
        " certificates of the system.",
    )
    verify_hostname: bool = Field(
        True, description="Whether the certificate of a broker must match the broker's host name."
    )
    certificate_file: CertificateFile | None = Field(None, description="PEM file with the client's certificate (mTLS).")
    key_file: KeyFile | None = Field(None, description="PEM file with the client's private key in PKCS#8.")
    key_password: SecretStr | None = Field(None, description="Password of key_file, if the key has one.")
    key_password_file: SecretFile | None = Field(None, description="File with the password of the key.")
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        None, description="Kafka's sasl.mechanism, for SASL_PLAINTEXT and SASL_SSL."
    )
    username: str | None = Field(None, min_length=1, description="User name for PLAIN and SCRAM.")
    password: SecretStr | None = Field(None, min_length=1, description="Password of username.")
    password_file: SecretFile | None = Field(None, description="File with the password of username.")
    oauth_token_endpoint: TokenEndpoint | None = Field(
        None, pattern="^https?://", description="URL of the token endpoint (client credentials grant)."
    )
    oauth_client_id: str | None = Field(
        None, min_length=1, description="Client id of the monitor at the token endpoint."
    )
    oauth_client_secret: SecretStr | None = Field(
        None, min_length=1, description="Client secret of the monitor at the token endpoint."
    )
    oauth_client_secret_file: SecretFile | None = Field(None, description="File with the client secret.")
    oauth_scope: str | None = Field(None, description="Scope to request, if the token endpoint requires one.")
    oauth_ca_file: CertificateFile | None = Field(
        None,
        description="PEM file with the CA certificates that sign the token endpoint's certificate. If not set: the CA"
        " certificates of the system.",
    )

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def has_sasl(self) -> bool:
        """Whether we say who we are by a SASL mechanism."""
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    @property
    def has_key_password(self) -> bool:
        """Whether the client's key is encrypted."""
        return self.key_password is not None or self.key_password_file is not None

    def secret_files(self) -> Iterator[Path]:
        """The files that hold a secret."""
        named = (self.password_file, self.key_file, self.key_password_file, self.oauth_client_secret_file)
        yield from filter(None, named)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if errors := [*self._useless(), *self._missing()]:
            raise ValueError("; ".join(errors))
        return self

    def _useless(self) -> Iterator[str]:
        """Rule 1."""
        of_oauth = self.mechanism == "OAUTHBEARER"
        for names, used, where in (
            (_OF_TLS, self.has_tls, f"protocol = {self.protocol!r}"),
            (("mechanism",), self.has_sasl, f"protocol = {self.protocol!r}"),
            (_OF_PASSWORD, self.has_sasl and not of_oauth, f"mechanism = {self.mechanism!r}"),
            (_OF_OAUTH, self.has_sasl and of_oauth, f"mechanism = {self.mechanism!r}"),
        ):
            for name in names:
                if not used and getattr(self, name) != type(self).model_fields[name].default:
                    yield f"{name} has no use with {where}"

    def _missing(self) -> Iterator[str]:
        """Rules 2 and 3."""
        if self.has_sasl and self.mechanism is None:
            yield f"protocol = {self.protocol!r} needs a mechanism"
        needed = {None: (), "OAUTHBEARER": ("oauth_token_endpoint", "oauth_client_id", "oauth_client_secret")}
        for name in needed.get(self.mechanism, ("username", "password")):
            ways = [way for way in (name, f"{name}_file") if way in type(self).model_fields]
            if all(getattr(self, way) is None for way in ways):
                yield f"mechanism = {self.mechanism!r} needs {' or '.join(ways)}"
        for name in ("password", "key_password", "oauth_client_secret"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                yield f"{name} and {name}_file are both set: leave one out"
        if (self.certificate_file is None) != (self.key_file is None):
            yield "certificate_file and key_file go together: set both or none"
        yield from self._key_and_password()

    def _key_and_password(self) -> Iterator[str]:
        """Rule 7."""
        has_password = self.has_key_password
        if self.key_file is None:
            if has_password:
                yield "key_password is set without key_file"
        elif ("BEGIN ENCRYPTED" in self.key_file.read_text()) != has_password:
            yield "key_password is set, but the key has none" if has_password else "the key needs its key_password"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What nobody may see, as read at start; None where there is none. Its repr shows nothing."""

    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    oauth_client_secret: str | None = field(default=None, repr=False)


def read_secrets(security: SecuritySettings) -> Secrets:
    """Read the files that hold secrets; a line break at a file's end is no part of the secret."""
    return Secrets(
        password=_secret(security.password, security.password_file),
        key_password=_secret(security.key_password, security.key_password_file),
        oauth_client_secret=_secret(security.oauth_client_secret, security.oauth_client_secret_file),
    )


def _secret(value: SecretStr | None, file: Path | None) -> str | None:
    if file is not None:
        return file.read_text("utf-8").rstrip("\r\n")
    return None if value is None else value.get_secret_value()
