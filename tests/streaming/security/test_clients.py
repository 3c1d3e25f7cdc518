"""Test that one configuration gives equivalent settings for kafka-python and for Kafka's Java client."""

from __future__ import annotations

import doctest
import importlib
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from streaming.config.security import Secrets, SecuritySettings, read_secrets
from streaming.security.java_client import KeyEncryptionError, check_key, java_secrets, spark_options
from streaming.security.oauth import ClientCredentialsTokens
from streaming.security.python_client import client_arguments
from tests.streaming.security.pem import KEY_PASSWORD, write_pem_files

SECRET = "hunter2"  # noqa: S105 - what must not be shown
FILE = Path("/private/client.properties")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pem")
    write_pem_files(folder, trustme.CA())
    return folder


def both(**given: object) -> tuple[dict[str, object], dict[str, str], dict[str, str]]:
    """Return kafka-python's arguments, Spark's options without their prefix, and the content of the secrets file."""
    security = SecuritySettings.model_validate(given)
    secrets = read_secrets(security)
    secrets_content = dict(java_secrets(security, secrets))
    options = spark_options(security, FILE if secrets_content else None)
    assert all(name.startswith("kafka.") for name in options)
    return (
        dict(client_arguments(security, secrets)),
        {name[6:]: value for name, value in options.items()},
        secrets_content,
    )


@pytest.mark.parametrize("name", ["java_client", "python_client", "secrets_file"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"streaming.security.{name}")).failed == 0


def test_plaintext_adds_nothing() -> None:
    assert both() == ({}, {}, {})


def test_tls_trusts_the_same_authorities_and_verifies_the_same_names(pem: Path) -> None:
    ca = str(pem / "ca.pem")
    python, java, secrets_content = both(protocol="SSL", ca_file=ca)
    assert python == {"security_protocol": "SSL", "ssl_check_hostname": True, "ssl_cafile": ca}
    assert java == {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    assert secrets_content == {}


def test_host_names_are_verified_unless_verify_hostname_is_false() -> None:
    """Java verifies by default (KIP-294). An empty algorithm disables the verification."""
    python, java, _ = both(protocol="SSL", verify_hostname=False)
    assert python["ssl_check_hostname"] is False
    assert java["ssl.endpoint.identification.algorithm"] == ""


def test_a_clients_key_stays_in_its_file(pem: Path) -> None:
    """Both clients read the key when they connect, so a renewed certificate is used without a restart."""
    files = {"certificate_file": str(pem / "client.pem"), "key_file": str(pem / "locked.key")}
    python, java, secrets_content = both(protocol="SSL", **files, key_password=KEY_PASSWORD)
    assert (python["ssl_certfile"], python["ssl_keyfile"]) == tuple(files.values())
    assert python["ssl_password"] == KEY_PASSWORD
    assert java["ssl.keystore.type"] == "PEM"
    assert java["ssl.keystore.certificate.chain"] == f"${{directory:{pem}:client.pem}}"
    assert java["ssl.keystore.key"] == f"${{directory:{pem}:locked.key}}"
    assert java["ssl.key.password"] == f"${{file:{FILE}:ssl.key.password}}"
    assert secrets_content == {"ssl.key.password": KEY_PASSWORD}


@pytest.mark.parametrize(
    ("key", "java", "is_refused"),
    [
        ("locked.key", 17, True),  # the form that current OpenSSL writes
        ("locked.key", 21, False),
        ("client.key", 17, False),  # no password
    ],
)
def test_a_key_that_java_cannot_decrypt_is_refused_before_spark_starts(
    pem: Path, key: str, java: int, is_refused: bool
) -> None:
    """Java 17 fails at each attempt with `NoSuchAlgorithmException: PBES2 SecretKeyFactory not available`."""
    files = {"certificate_file": pem / "client.pem", "key_file": pem / key}
    password = {} if key == "client.key" else {"key_password": KEY_PASSWORD}
    security = SecuritySettings.model_validate({"protocol": "SSL", **files, **password})
    with pytest.raises(KeyEncryptionError, match="Java 17 cannot decrypt") if is_refused else nullcontext():
        check_key(security, lambda: java)


@pytest.mark.parametrize(
    ("mechanism", "login_module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_both_clients_get_user_and_password(mechanism: str, login_module: str) -> None:
    python, java, secrets_content = both(protocol="SASL_SSL", mechanism=mechanism, username="monitor", password=SECRET)
    assert python["sasl_mechanism"] == java["sasl.mechanism"] == mechanism
    assert (python["sasl_plain_username"], python["sasl_plain_password"]) == ("monitor", SECRET)
    assert java["sasl.jaas.config"] == f"${{file:{FILE}:sasl.jaas.config}}"
    assert secrets_content == {"sasl.jaas.config": f'{login_module} required username="monitor" password="{SECRET}";'}


def test_both_clients_get_tokens_from_the_same_endpoint_with_the_same_id(pem: Path) -> None:
    """KIP-768: Java's client requests tokens itself. The CA of the endpoint is in the JAAS line."""
    ca = str(pem / "ca.pem")
    endpoint = "https://id.example/token"
    oauth = {"oauth_client_id": "m", "oauth_client_secret": SECRET, "oauth_scope": "read", "oauth_ca_file": ca}
    python, java, secrets_content = both(
        protocol="SASL_SSL", mechanism="OAUTHBEARER", oauth_token_endpoint=endpoint, **oauth
    )
    assert isinstance(python["sasl_oauth_token_provider"], ClientCredentialsTokens)
    assert "sasl_plain_password" not in python
    assert java["sasl.oauthbearer.token.endpoint.url"] == endpoint
    assert java["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    assert secrets_content["sasl.jaas.config"].endswith(
        f'required clientId="m" clientSecret="{SECRET}" scope="read"'
        f' ssl.truststore.type="PEM" ssl.truststore.location="{ca}";'
    )


_TOKEN = re.compile(r'password="((?:[^"\\]|\\.)*)";$', re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r"}


@given(st.text(min_size=1))
def test_no_password_can_end_its_own_quotes(password: str) -> None:
    """Java's StreamTokenizer parses JAAS. An unescaped quote, backslash or line break could add further options."""
    security = SecuritySettings(protocol="SASL_SSL", mechanism="PLAIN", username="m", password=password)
    jaas = java_secrets(security, Secrets(password=password))["sasl.jaas.config"]
    assert len(jaas.splitlines()) == 1 or not {"\n", "\r"} & set(jaas)
    quoted = _TOKEN.search(jaas)
    assert quoted is not None
    assert re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted[1], flags=re.DOTALL) == password


@given(st.text(alphabet='xyzXYZ0123456789"\\ü', min_size=8))
def test_no_option_of_spark_and_no_printed_argument_contains_a_secret(secret: str) -> None:
    """Spark shows options in plans, logs and its web page; kafka-python logs its arguments."""
    python, java, _ = both(protocol="SASL_SSL", mechanism="PLAIN", username="m", password=secret)
    assert secret not in str(java)
    assert repr(secret)[1:-1] not in str(python)
    assert python["sasl_plain_password"] == secret
