"""Settings as options of Spark's Kafka source: the names of Kafka's Java client behind `kafka.`.

Spark shows a source's options in many places: plans, its web page, logs. So no option holds a secret. Kafka's client
itself looks secrets up, when a consumer is made (`config.providers`, KIP-421): the JAAS line and the key's password in
a file of ours, certificate and key in the user's own files.

KIP-651 (PEM), KIP-768 (OAuth client credentials).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path

from streaming.config.security import Secrets, SecuritySettings
from streaming.errors import RemedyError

_PROVIDERS = "org.apache.kafka.common.config.provider"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # the object identifier 1.2.840.113549.1.5.13
_JAVA_WITHOUT_PBES2 = 17
_JAAS, _KEY_PASSWORD = "sasl.jaas.config", "ssl.key.password"


class KeyEncryptionError(RemedyError):
    """The client's key is encrypted in a way that Java does not know."""


def java_secrets(security: SecuritySettings, secrets: Secrets) -> Mapping[str, str]:
    r"""What belongs into the secrets file, by name; empty where nothing is secret.

    >>> scram = SecuritySettings(
    ...     protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", username="monitor", password='say "friend"'
    ... )
    >>> print(java_secrets(scram, Secrets(password='say "friend"'))["sasl.jaas.config"])
    org.apache.kafka.common.security.scram.ScramLoginModule required username="monitor" password="say \"friend\"";
    """
    found: dict[str, str] = {}
    if security.mechanism is not None:
        found[_JAAS] = _jaas(security.mechanism, security, secrets)
    if secrets.key_password is not None:
        found[_KEY_PASSWORD] = secrets.key_password
    return found


def spark_options(security: SecuritySettings, secrets_file: Path | None) -> Mapping[str, str]:
    """Options of Spark's Kafka source; `secrets_file` holds `java_secrets`, or is None where there are none.

    >>> spark_options(SecuritySettings(protocol="SSL"), None)
    {'kafka.security.protocol': 'SSL'}
    """
    if security.protocol == "PLAINTEXT":
        return {}
    options = {"security.protocol": security.protocol, **_tls(security), **_sasl(security)}
    if security.key_file is not None or secrets_file is not None:
        options |= _PROVIDER_OPTIONS
    if security.mechanism is not None:
        options[_JAAS] = f"${{file:{secrets_file}:{_JAAS}}}"
    if security.has_key_password:
        options[_KEY_PASSWORD] = f"${{file:{secrets_file}:{_KEY_PASSWORD}}}"
    return {f"kafka.{name}": value for name, value in options.items()}


_PROVIDER_OPTIONS = {
    "config.providers": "file,directory",
    "config.providers.file.class": f"{_PROVIDERS}.FileConfigProvider",
    "config.providers.directory.class": f"{_PROVIDERS}.DirectoryConfigProvider",
}


def _tls(security: SecuritySettings) -> Mapping[str, str]:
    options: dict[str, str] = {}
    if security.ca_file is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(security.ca_file)}
    if security.has_tls and not security.verify_hostname:
        options["ssl.endpoint.identification.algorithm"] = ""
    if security.certificate_file is not None and security.key_file is not None:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _content_of(security.certificate_file),
            "ssl.keystore.key": _content_of(security.key_file),
        }
    return options


def _sasl(security: SecuritySettings) -> Mapping[str, str]:
    if security.mechanism is None:
        return {}
    if security.mechanism != "OAUTHBEARER":
        return {"sasl.mechanism": security.mechanism}
    return {
        "sasl.mechanism": security.mechanism,
        "sasl.login.callback.handler.class": _OAUTH_LOGIN,
        "sasl.oauthbearer.token.endpoint.url": str(security.oauth_token_endpoint),
    }


def check_key(security: SecuritySettings, java_version: Callable[[], int]) -> None:
    """Raise KeyEncryptionError where Java 17 is to decrypt what OpenSSL encrypts keys with today (PBES2, RFC 8018)."""
    if security.key_file is None or not security.has_key_password:
        return
    if _PBES2 in _der(security.key_file.read_text("ascii")) and java_version() == _JAVA_WITHOUT_PBES2:
        raise KeyEncryptionError(
            f"Java 17 cannot decrypt {security.key_file} (PBES2): run on Java 21, take the password off the key, or"
            " encrypt it with `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES`"
        )


def _der(pem: str) -> bytes:
    return base64.b64decode(pem.partition("PRIVATE KEY-----")[2].partition("-----")[0])


def _content_of(file: Path) -> str:
    """A reference that the client replaces by the file's content, each time that it connects anew."""
    return f"${{directory:{file.parent}:{file.name}}}"


def _jaas(mechanism: str, security: SecuritySettings, secrets: Secrets) -> str:
    ca_file = security.oauth_ca_file
    given: dict[str, str | None]
    if mechanism == "OAUTHBEARER":
        given = {
            "clientId": security.oauth_client_id,
            "clientSecret": secrets.oauth_client_secret,
            "scope": security.oauth_scope,
            **({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca_file)} if ca_file else {}),
        }
    else:
        given = {"username": security.username, "password": secrets.password}
    options = (f"{name}={_quoted(value)}" for name, value in given.items() if value is not None)
    return " ".join([_LOGIN_MODULES[mechanism], "required", *options]) + ";"


def _quoted(value: str) -> str:
    """A value as JAAS reads it, which is as Java's StreamTokenizer does."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
