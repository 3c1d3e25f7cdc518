"""Convert the settings to options of Spark's Kafka source.

Each option is an option of Kafka's Java client, with the prefix `kafka.`. Spark shows the options of a source in query
plans, on its web page and in logs. So no option contains a secret. Instead, each consumer reads the secrets from files
(`config.providers`, KIP-421). The monitor's secrets file contains the JAAS line and the password of the client's key.
The user's files contain the client's certificate and key.

See KIP-651 (PEM) and KIP-768 (OAuth client credentials).
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
    """Error: this version of Java cannot decrypt the client's key."""


def java_secrets(security: SecuritySettings, secrets: Secrets) -> Mapping[str, str]:
    r"""Return the properties that the secrets file contains. The result is empty if there are no secrets.

    >>> scram = SecuritySettings(
    ...     protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", username="monitor", password='say "friend"'
    ... )
    >>> print(java_secrets(scram, Secrets(password='say "friend"'))["sasl.jaas.config"])
    org.apache.kafka.common.security.scram.ScramLoginModule required username="monitor" password="say \"friend\"";
    """
    values: dict[str, str] = {}
    if security.mechanism is not None:
        values[_JAAS] = _jaas_line(security.mechanism, security, secrets)
    if secrets.key_password is not None:
        values[_KEY_PASSWORD] = secrets.key_password
    return values


def spark_options(security: SecuritySettings, secrets_file: Path | None) -> Mapping[str, str]:
    """Return the options of Spark's Kafka source.

    `secrets_file` is the file that contains the result of `java_secrets`, or None if there are no secrets.
    >>> spark_options(SecuritySettings(protocol="SSL"), None)
    {'kafka.security.protocol': 'SSL'}
    """
    if security.protocol == "PLAINTEXT":
        return {}
    options = {"security.protocol": security.protocol, **_tls_options(security), **_sasl_options(security)}
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


def _tls_options(security: SecuritySettings) -> Mapping[str, str]:
    options: dict[str, str] = {}
    if security.ca_file is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(security.ca_file)}
    if security.has_tls and not security.verify_hostname:
        options["ssl.endpoint.identification.algorithm"] = ""
    if security.certificate_file is not None and security.key_file is not None:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _file_reference(security.certificate_file),
            "ssl.keystore.key": _file_reference(security.key_file),
        }
    return options


def _sasl_options(security: SecuritySettings) -> Mapping[str, str]:
    options = {} if security.mechanism is None else {"sasl.mechanism": str(security.mechanism)}
    if security.mechanism == "OAUTHBEARER":
        options["sasl.login.callback.handler.class"] = _OAUTH_LOGIN
        options["sasl.oauthbearer.token.endpoint.url"] = str(security.oauth_token_endpoint)
    return options


def check_key(security: SecuritySettings, java_version: Callable[[], int]) -> None:
    """Raise KeyEncryptionError if the Java version is 17 and the key is encrypted with PBES2 (RFC 8018).

    Java 17 cannot decrypt such a key, but OpenSSL uses PBES2 by default.
    """
    if security.key_file is None or not security.has_key_password:
        return
    pem = security.key_file.read_text("ascii")
    key = base64.b64decode(pem.partition("PRIVATE KEY-----")[2].partition("-----")[0])
    if _PBES2 in key and java_version() == _JAVA_WITHOUT_PBES2:
        raise KeyEncryptionError(
            f"Java 17 cannot decrypt {security.key_file} (PBES2): use Java 21, remove the password of the key, or"
            " encrypt it with `openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES`"
        )


def _file_reference(file: Path) -> str:
    """Return a reference to a file. At each connect, Kafka's client replaces the reference with the file's content."""
    return f"${{directory:{file.parent}:{file.name}}}"


def _jaas_line(mechanism: str, security: SecuritySettings, secrets: Secrets) -> str:
    ca_file = security.oauth_ca_file
    values: dict[str, str | None]
    if mechanism == "OAUTHBEARER":
        values = {
            "clientId": security.oauth_client_id,
            "clientSecret": secrets.oauth_client_secret,
            "scope": security.oauth_scope,
            **({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca_file)} if ca_file else {}),
        }
    else:
        values = {"username": security.username, "password": secrets.password}
    options = (f"{name}={_quote_for_jaas(value)}" for name, value in values.items() if value is not None)
    return " ".join([_LOGIN_MODULES[mechanism], "required", *options]) + ";"


def _quote_for_jaas(value: str) -> str:
    """Quote a value for Java's StreamTokenizer, which parses the JAAS line."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
