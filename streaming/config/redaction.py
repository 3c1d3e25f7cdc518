"""Hide secrets of the settings in `config check`, errors, log lines, Spark's pages and command lines.

1. In `spark.conf`, users choose the names of properties. There is a list of names whose values are never secret. Only
   the values of these names are shown. A list of the names of secrets is never complete, because some names have a
   variable part. Examples are `fs.azure.account.key.ACCOUNT` and `fs.azure.sas.CONTAINER`.
2. In a URI, two parts are hidden: the part between `://` and the last `@`, and the part after the first `?`. Both parts
   are long, because a secret can contain `/`, `:` and `@`.
3. All values that rules 1 and 2 hide, and all secrets from settings and files, are removed from log lines and errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

REDACTED = "*********(redacted)"

_HARMLESS = re.compile(
    r"spark\.(sql|streaming|executor|driver|cores|default|dynamicAllocation|eventLog|files|io|locality|memory|network|python"
    r"|rdd|reducer|rpc|scheduler|serializer|shuffle|speculation|stage|storage|task|ui|databricks\.delta)\..+"
    r"|spark\.hadoop\.fs\.s3a\.(endpoint|endpoint\.region|path\.style\.access|impl"
    r"|(connection|threads|fast\.upload|block|multipart|attempts|retry)\..+)"
    r"|spark\.kubernetes\.(namespace|container\.image)"
    r"|spark\.(master|app\.name|logConf|jars|serializer|port\.maxRetries)"
)
_SUSPICIOUS = re.compile(
    r"secret|passw|passphrase|token|key|credential|auth|sas\b|jaas|sign|cert|catalog|jdbc|url|uri|env|options|header|prox",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://).*@", re.DOTALL)
_COMMON_WORD = re.compile(r"-?[0-9.]+[a-zA-Z]{0,3}|true|false|[a-z]{1,7}", re.IGNORECASE)
"""Matches a number, a size or a short word. Such a value is not removed from log lines, because it is too common."""
_ASSIGNMENT = re.compile(r'=\s*"([^"]+)"|=([^\s;"]+)')
_SHORTEST_SECRET = 4
_ADDRESSES_FOR_LAUNCH = ("spark.master", "spark.jars", "spark.files", "spark.archives", "spark.submit.")


def is_harmless(name: str) -> bool:
    """Return True if the value of a Spark property is never a secret (rule 1).

    >>> is_harmless("spark.sql.shuffle.partitions"), is_harmless("spark.hadoop.fs.azure.account.key.mine")
    (True, False)
    """
    return bool(_HARMLESS.fullmatch(name)) and not _SUSPICIOUS.search(name)


def is_for_launch(name: str) -> bool:
    """Return True if a Spark property contains addresses that Spark needs at launch.

    Spark reads such a property from its command line.

    >>> is_for_launch("spark.jars.repositories"), is_for_launch("spark.driver.extraJavaOptions")
    (True, False)
    """
    return name.startswith(_ADDRESSES_FOR_LAUNCH)


def hide_users(text: str) -> str:
    """Return a text without the users and passwords of its URIs.

    If the text has several URIs, the text between the URIs is also hidden.
    """
    return _USER_INFO.sub(f"{REDACTED}@", text)


def without_credentials(text: str) -> str:
    """Return a URI without its credentials (rule 2).

    >>> without_credentials("s3a://AKIA:ab/c@d@bucket/tables?sig=x")
    's3a://*********(redacted)@bucket/tables?*********(redacted)'
    >>> without_credentials("s3a://bucket/tables?sig=x@y")
    's3a://*********(redacted)'
    """
    scheme, separator, rest = text.partition("://")
    users, at, location = rest.rpartition("@")
    if not separator or "?" in users:  # the last @ and the text after it may be part of the query
        return f"{scheme}{separator}{REDACTED}" if separator else text
    address, question, _ = location.partition("?")
    return "".join((scheme, separator, f"{REDACTED}@" if at else "", address, f"?{REDACTED}" if question else ""))


def hide_secrets(value: Any) -> Any:  # noqa: ANN401 - any part of the settings
    """Return a value of the settings with its secrets replaced by a placeholder (rules 1 and 2)."""
    if isinstance(value, SecretStr):
        return REDACTED
    if isinstance(value, Mapping):
        return {key: _hide_by_name(str(key), inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [hide_secrets(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return without_credentials(value) if isinstance(value, str) and "://" in value else value


def _hide_by_name(name: str, value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, SecretStr) and is_harmless(name):
        return without_credentials(value.get_secret_value())
    return value if isinstance(value, BaseModel) else hide_secrets(value)


class Redactor:
    """Removes known secrets from texts (rule 3)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        longest_first = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._secrets.sub(REDACTED, text) if self._secrets else text


def secrets_in(settings: BaseModel) -> Iterator[str]:
    """Return every text in the settings that is a secret."""
    for _, value in settings:
        yield from _secrets_in_value(value)


def _secrets_in_value(value: Any) -> Iterator[str]:  # noqa: ANN401 - any part of the settings
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        yield from secrets_in(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets_in_map_value(name, inner) if isinstance(inner, SecretStr) else _secrets_in_value(inner)
    elif isinstance(value, str):
        yield from _credentials_in(value)


def _secrets_in_map_value(name: str, value: SecretStr) -> Iterator[str]:
    """Return the secrets in a value of `spark.conf`.

    A setting can contain `-Dname=value` or `name="value";`. In this case, the inner `value` is also a secret, because a
    log line can contain only the inner value.
    """
    text = value.get_secret_value()
    yield from _credentials_in(text)
    if not is_harmless(name):
        parts = (quoted or bare for quoted, bare in _ASSIGNMENT.findall(text))
        yield from (part for part in (text, *parts) if not _COMMON_WORD.fullmatch(part))


def _credentials_in(uri: str) -> Iterator[str]:
    """Return the secrets of a URI with a password or a query: the URI, its secret parts, and each possible password.

    A user name without a password is not a secret, because this user name can be an Azure container. A password can
    contain `@`. So each `@` is a possible end of the password.
    """
    _, separator, rest = uri.partition("://")
    _, question, query = rest.partition("?")
    user, colon, _ = rest.rpartition("@")[0].partition(":")
    if separator and (question or colon):
        yield from (uri, query)
        for end in re.finditer("@", rest) if colon else ():
            yield from (rest[: end.start()], rest[len(user) + 1 : end.start()])
