"""Tests of the removal of known secrets from log lines."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from streaming.config.load import Settings, create_redactor
from streaming.config.redactor import Redactor
from streaming.config.secret_settings import REDACTED
from streaming.config.security import SecuritySettings
from streaming.config.settings import KafkaSettings, SparkSettings

LONG = "p\\a\"s/w+rd é'\n😀&<"


def with_conf(**conf: str) -> Redactor:
    values = {f"spark.hadoop.fs.{name}.key": SecretStr(value) for name, value in conf.items()}
    return create_redactor(Settings(spark=SparkSettings(conf=values)))


def with_password(password: str) -> Redactor:
    security = SecuritySettings(
        protocol="SASL_PLAINTEXT", mechanism="PLAIN", username="me", password=SecretStr(password)
    )
    return create_redactor(Settings(kafka=KafkaSettings(security=security)))


@pytest.mark.parametrize(
    "spelled",
    [
        LONG,
        repr(LONG)[1:-1],
        repr(f'"{LONG}')[2:-1],
        ascii(LONG)[1:-1],
        json.dumps(LONG)[1:-1],
        json.dumps(LONG, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(LONG))[3:-3],
        json.dumps(LONG)[1:-1].replace("/", "\\/"),
        repr(LONG.encode())[2:-1],
        quote(LONG),
        quote(LONG, safe=""),
        quote(LONG).lower(),
        quote_plus(LONG),
        quote(quote(LONG)),
    ],
)
def test_a_secret_is_removed_in_each_spelling(spelled: str) -> None:
    """Only the secret as it is in the settings was removed. A traceback shows its repr, and a URL encodes it."""
    assert with_password(LONG)(f"<{spelled}>") == f"<{REDACTED}>"


@given(st.text("ab/\\'\"é%+ \n#", min_size=4, max_size=12), st.sampled_from([repr, ascii, json.dumps, quote]))
def test_each_spelling_of_any_secret_is_removed(secret: str, spell: object) -> None:
    redact = Redactor([secret])
    if len(secret.strip()) > 1:  # rule 2
        assert REDACTED in redact(f"<{spell(secret)}>")  # type: ignore[operator]


def test_the_decoded_form_of_a_secret_is_removed() -> None:
    """An S3 key contains slashes, which are percent-encoded in an address. Hadoop's errors show the decoded key."""
    assert Redactor(["ab%2Fcd99"])("key ab/cd99, ab%2Fcd99, ab%2fcd99") == f"key {REDACTED}, {REDACTED}, {REDACTED}"


@pytest.mark.parametrize("value", ["hunter", "12345678", "1234", "Hunter2", "s3cr3t"])
def test_short_words_and_numbers_in_the_properties_of_spark_are_removed(value: str) -> None:
    """They were not removed, because common values such as `true` have the same form."""
    assert with_conf(mine=value)(f"key={value}.") == f"key={REDACTED}."


@pytest.mark.parametrize("value", ["true", "FALSE", "200", "1.5", "512m", "30s", "INFO", "none", "auto"])
def test_common_values_in_the_properties_of_spark_are_not_removed(value: str) -> None:
    """Otherwise, most log lines would lose words."""
    assert with_conf(mine=value)(f"key={value}.") == f"key={value}."


@pytest.mark.parametrize("password", ["abc", "a1", "ü!", "true", "200"])
def test_a_short_password_is_removed_as_a_whole_word(password: str) -> None:
    """Passwords with fewer than four characters were not removed."""
    assert with_password(password)(f"password={password}, x") == f"password={REDACTED}, x"


def test_a_short_password_is_not_removed_from_longer_words() -> None:
    assert with_password("abc")("abcdef xabc abc") == f"abcdef xabc {REDACTED}"
    assert with_password("a")("a word") == "a word"


def test_the_values_in_the_query_of_an_address_are_removed() -> None:
    """An error of Azure shows only the signature."""
    redact = create_redactor(
        Settings(spark=SparkSettings(conf={"spark.eventLog.dir": SecretStr("https://h/x?sv=1&sig=Zq7hunter2#k=a1b2")}))
    )
    assert redact("signature Zq7hunter2 and a1b2, version 1") == f"signature {REDACTED} and {REDACTED}, version 1"
