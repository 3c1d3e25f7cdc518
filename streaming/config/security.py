"""Settings of `kafka.security`: authentication and encryption of the connections to the brokers.

At start, the monitor checks these rules and prints one line for each violation:

1. A setting is an error if the protocol or the mechanism does not use it.
2. A mechanism needs all its settings. PLAIN and SCRAM need a user name and a password. OAUTHBEARER needs a token
   endpoint, a client id and a client secret.
3. Each secret is set in only one way: as a value or as a file.
4. A file that a setting names must be readable and must not be empty.
5. The client's private key must be PKCS#8 in PEM. Java reads no other format of a private key.
6. Other users must not be able to read the private key or any other file with a secret (`private_files`).
7. If the client's key is encrypted, its password must be set. Without the password, OpenSSL would ask for it on the
   terminal and wait. If the client's key is not encrypted, the password must not be set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator
from typing_extensions import Self

from streaming.config.private_files import refusal_reason, shown_file
from streaming.config.secret_settings import ADDRESS
from streaming.config.section import Section
from streaming.config.types.paths import absolute_path

_PKCS8 = re.compile(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----")
_TLS_SETTINGS = ("ca_file", "verify_hostname", "certificate_file", "key_file", "key_password", "key_password_file")
_PASSWORD_SETTINGS = ("username", "password", "password_file")
_OAUTH_SETTINGS = (
    "oauth_token_endpoint",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_client_secret_file",
    "oauth_scope",
    "oauth_ca_file",
)


def _check_readable(path: Path) -> Path:
    absolute = absolute_path(path)
    if set(str(absolute)) & set(":}"):
        raise ValueError("Kafka's Java client does not support a path with a colon or a closing brace")
    try:
        content = absolute.read_text("utf-8")
    except OSError as unreadable:
        shown = shown_file(absolute, "the file in this setting (not shown, because it can be a secret)")
        raise ValueError(f"{shown}: {(unreadable.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{absolute} is not text: use a PEM file, not DER or a Java keystore") from None
    if not content.strip():
        raise ValueError(f"{absolute} is empty")
    return absolute


def _check_private(path: Path) -> Path:
    absolute = _check_readable(path)
    if reason := refusal_reason(absolute):
        raise ValueError(reason)
    return absolute


def _check_pem(path: Path) -> Path:
    if "-----BEGIN CERTIFICATE-----" not in _check_readable(path).read_text():
        raise ValueError(f"{path} contains no PEM certificate")
    return _check_readable(path)


def _check_pkcs8(path: Path) -> Path:
    if not _PKCS8.search(_check_readable(path).read_text()):
        raise ValueError(f"{path} is not a PKCS#8 key in PEM: convert it with `openssl pkcs8 -topk8 -in {path}`")
    return _check_private(path)


def _check_no_user(url: str) -> str:
    if "@" in url.partition("://")[2]:
        raise ValueError("the URL must not contain a user or password: set oauth_client_id and oauth_client_secret")
    return url


SecretFile = Annotated[Path, AfterValidator(_check_private)]
CertificateFile = Annotated[Path, AfterValidator(_check_pem)]
KeyFile = Annotated[Path, AfterValidator(_check_pkcs8)]
TokenEndpoint = Annotated[str, AfterValidator(_check_no_user), ADDRESS]


class SecuritySettings(Section):
    """Authentication and encryption of all connections to the brokers. Spark's Kafka source uses the same settings."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT",
        description="Kafka's setting security.protocol. SSL and SASL_SSL encrypt all connections to the brokers.",
    )
    ca_file: CertificateFile | None = Field(
        None,
        description="PEM file with the CA certificates that sign the brokers' certificates. If not set, the monitor"
        " uses the CA certificates of the system.",
    )
    verify_hostname: bool = Field(
        True, description="If true, the monitor checks that the certificate of a broker matches the broker's host name."
    )
    certificate_file: CertificateFile | None = Field(
        None, description="PEM file with the client certificate of the monitor (mTLS)."
    )
    key_file: KeyFile | None = Field(
        None,
        description="PEM file with the private key of the certificate in certificate_file. The key must be in PKCS#8"
        " format. Other users must not be able to read this file (chmod 600).",
    )
    key_password: SecretStr | None = Field(
        None, description="Password of the private key in key_file, if the key is encrypted."
    )
    key_password_file: SecretFile | None = Field(
        None, description="File that contains the password of the private key in key_file."
    )
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        None,
        description="Kafka's setting sasl.mechanism. Only the protocols SASL_PLAINTEXT and SASL_SSL use this setting.",
    )
    username: str | None = Field(None, min_length=1, description="User name for the mechanisms PLAIN and SCRAM.")
    password: SecretStr | None = Field(None, min_length=1, description="Password of the SASL user.")
    password_file: SecretFile | None = Field(None, description="File that contains the password of the SASL user.")
    oauth_token_endpoint: TokenEndpoint | None = Field(
        None,
        pattern="^https?://",
        description="URL of the OAuth token endpoint. The monitor uses the client credentials grant.",
    )
    oauth_client_id: str | None = Field(
        None, min_length=1, description="Client id with which the monitor authenticates at the token endpoint."
    )
    oauth_client_secret: SecretStr | None = Field(
        None, min_length=1, description="Client secret with which the monitor authenticates at the token endpoint."
    )
    oauth_client_secret_file: SecretFile | None = Field(None, description="File that contains the client secret.")
    oauth_scope: str | None = Field(
        None,
        description="OAuth scope that the monitor requests. Set this setting if the token endpoint requires a scope.",
    )
    oauth_ca_file: CertificateFile | None = Field(
        None,
        description="PEM file with the CA certificates that sign the token endpoint's certificate. If not set, the"
        " monitor uses the CA certificates of the system.",
    )

    @property
    def has_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def has_sasl(self) -> bool:
        """True if the monitor authenticates with a SASL mechanism."""
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    @property
    def has_key_password(self) -> bool:
        """True if the client's key is encrypted."""
        return self.key_password is not None or self.key_password_file is not None

    def secret_files(self) -> Iterator[Path]:
        """Return the files that contain a secret."""
        files = (self.password_file, self.key_file, self.key_password_file, self.oauth_client_secret_file)
        yield from filter(None, files)

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        if errors := [*self._unused_settings(), *self._missing_settings()]:
            raise ValueError("; ".join(errors))
        return self

    def _unused_settings(self) -> Iterator[str]:
        is_oauth = self.mechanism == "OAUTHBEARER"
        for names, is_used, condition in (
            (_TLS_SETTINGS, self.has_tls, f"protocol = {self.protocol!r}"),
            (("mechanism",), self.has_sasl, f"protocol = {self.protocol!r}"),
            (_PASSWORD_SETTINGS, self.has_sasl and not is_oauth, f"mechanism = {self.mechanism!r}"),
            (_OAUTH_SETTINGS, self.has_sasl and is_oauth, f"mechanism = {self.mechanism!r}"),
        ):
            for name in names:
                if not is_used and getattr(self, name) != type(self).model_fields[name].default:
                    yield f"{name} has no effect with {condition}"

    def _missing_settings(self) -> Iterator[str]:
        if self.has_sasl and self.mechanism is None:
            yield f"protocol = {self.protocol!r} needs a mechanism"
        required = {None: (), "OAUTHBEARER": ("oauth_token_endpoint", "oauth_client_id", "oauth_client_secret")}
        for name in required.get(self.mechanism, ("username", "password")):
            names_of_secret = [setting for setting in (name, f"{name}_file") if setting in type(self).model_fields]
            if all(getattr(self, setting) is None for setting in names_of_secret):
                yield f"mechanism = {self.mechanism!r} needs {' or '.join(names_of_secret)}"
        for name in ("password", "key_password", "oauth_client_secret"):
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                yield f"{name} and {name}_file are both set: remove one of them"
        if (self.certificate_file is None) != (self.key_file is None):
            yield "certificate_file and key_file belong together: set both, or remove both"
        yield from self._key_errors()

    def _key_errors(self) -> Iterator[str]:
        has_password = self.has_key_password
        if self.key_file is None:
            if has_password:
                yield "key_password is set without key_file"
        elif ("BEGIN ENCRYPTED" in self.key_file.read_text()) != has_password:
            yield (
                "key_password is set, but the key in key_file is not encrypted"
                if has_password
                else "the key in key_file is encrypted, but neither key_password nor key_password_file is set"
            )


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets that the monitor reads at start.

    A secret that is not set is None. The `repr` does not contain the secrets.
    """

    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    oauth_client_secret: str | None = field(default=None, repr=False)


def read_secrets(security: SecuritySettings) -> Secrets:
    """Read the secrets from the settings and the files. A line break at the end of a file is not part of the secret."""
    return Secrets(
        password=_read_secret(security.password, security.password_file),
        key_password=_read_secret(security.key_password, security.key_password_file),
        oauth_client_secret=_read_secret(security.oauth_client_secret, security.oauth_client_secret_file),
    )


def _read_secret(value: SecretStr | None, file: Path | None) -> str | None:
    if file is not None:
        return file.read_text("utf-8").rstrip("\r\n")
    return None if value is None else value.get_secret_value()
