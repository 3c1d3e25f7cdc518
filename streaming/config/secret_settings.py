"""Hide secrets of the settings in `config check`, errors, log lines, Spark's pages and command lines.

1. In `spark.conf`, the user chooses the names of the properties. A value is shown only if the name of the property is
   in a list of harmless names. A list of dangerous names would never be complete, because some names have a variable
   part. Examples are `fs.azure.account.key.ACCOUNT` and `fs.azure.sas.CONTAINER`.
2. In a URI, the part between `://` and the last `@` is hidden. An earlier `@` does not end the hidden part, because a
   secret can contain `/`, `:` and `@`. The part of a URI after the first `?`, `#` or `;` is also hidden. In
   `spark.conf`, a text without `://` can also be an address. In such a text, the part before the last `@` is hidden if
   this part contains a colon. A text that starts with `/` is a local path, which contains no secret.
3. Log lines and errors contain no value that rules 1 and 2 hide. Log lines and errors also contain no secret from
   settings and files (`redactor.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

REDACTED = "*********(redacted)"
ADDRESS: Final = "address"
"""Marks a setting whose value is an address. Errors never show the value, because an address can contain a password."""

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
_QUERY = re.compile(r"[?#;]")
_QUERY_IN_TEXT = re.compile(r"(://[^\s?#;]*[?#;])\S+")
_COMMON_WORD = re.compile(
    r"-?[0-9]{1,3}(\.[0-9]+)?[a-z]{0,2}|true|false|yes|no|on|off|none|null|auto|all|default|trace|debug|info|warn|error",
    re.IGNORECASE,
)
"""Matches a short number, a size or a common word. Such a value in `spark.conf` is not removed from log lines."""
_ASSIGNMENT = re.compile(r'=\s*"([^"]+)"|=([^\s;"]+)')
_ADDRESSES_FOR_LAUNCH = ("spark.master", "spark.jars", "spark.files", "spark.archives", "spark.submit.")


def is_harmless(name: str) -> bool:
    """Return True if the value of a Spark property is never a secret (rule 1).

    >>> is_harmless("spark.sql.shuffle.partitions"), is_harmless("spark.hadoop.fs.azure.account.key.mine")
    (True, False)
    """
    return bool(_HARMLESS.fullmatch(name)) and not _SUSPICIOUS.search(name)


def is_public(name: str, value: str) -> bool:
    """Return True if a Spark property contains no secret (rules 1 and 2)."""
    return is_harmless(name) and value == without_credentials(value)


def is_for_launch(name: str) -> bool:
    """Return True if a Spark property contains addresses and must be on Spark's command line.

    >>> is_for_launch("spark.jars.repositories"), is_for_launch("spark.driver.extraJavaOptions")
    (True, False)
    """
    return name.startswith(_ADDRESSES_FOR_LAUNCH)


def hide_credentials(text: str) -> str:
    """Return a text in which the users, passwords and queries of URIs are hidden.

    If the text has several URIs, the text between the URIs is also hidden.

    >>> hide_credentials("no answer of https://me:a@id/token?sig=x (timeout)")
    'no answer of https://*********(redacted)@id/token?*********(redacted) (timeout)'
    """
    return _QUERY_IN_TEXT.sub(rf"\1{REDACTED}", _USER_INFO.sub(f"{REDACTED}@", text))


def without_credentials(text: str) -> str:
    """Return an address in which the credentials are hidden (rule 2).

    >>> without_credentials("s3a://AKIA:ab/c@d@bucket/tables?sig=x")
    's3a://*********(redacted)@bucket/tables?*********(redacted)'
    >>> without_credentials("s3a://bucket/tables?sig=x@y"), without_credentials("storage:9000;key=x")
    ('s3a://*********(redacted)', 'storage:9000;*********(redacted)')
    """
    if text.startswith("/"):
        return text
    scheme, rest = _split_scheme(text)
    users, at, location = rest.rpartition("@")
    if _QUERY.search(users):  # the last @ and the text after it may be part of the query
        return f"{scheme}{REDACTED}"
    if at and (scheme or ":" in users):
        users = REDACTED
    query = _QUERY.search(location)
    end = f"{location[: query.end()]}{REDACTED}" if query else location
    return f"{scheme}{users}{at}{end}"


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    return (scheme + separator, rest) if separator else ("", text)


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
    elif isinstance(value, str) and "://" in value:
        yield from _credentials_in(value)


def _secrets_in_map_value(name: str, value: SecretStr) -> Iterator[str]:
    """Return the secrets in a value of `spark.conf`.

    A setting can contain `-Dname=value` or `name="value";`. The inner `value` is also a secret, because a log line can
    contain the inner value without the rest of the setting.
    """
    text = value.get_secret_value()
    yield from _credentials_in(text)
    if not is_harmless(name):
        parts = (quoted or bare for quoted, bare in _ASSIGNMENT.findall(text))
        yield from _uncommon((text, *parts))


def _credentials_in(address: str) -> Iterator[str]:
    """Return the secrets of an address: the address, its query, the values in the query, and the password.

    A user name without a password is not a secret, because it can be the name of an Azure container. A password can
    contain `@`, so the function returns one possible password for each `@`.
    """
    _, rest = _split_scheme(address)
    query = _QUERY.split(rest, maxsplit=1)[1:]
    user, colon, _ = rest.rpartition("@")[0].partition(":")
    if address.startswith("/") or not (query or colon):
        return
    yield from (address, *query)
    yield from _uncommon(part.partition("=")[2] for part in re.split("[?#;&]", "".join(query)))
    for end in re.finditer("@", rest) if colon else ():
        yield from (rest[: end.start()], rest[len(user) + 1 : end.start()])


def _uncommon(values: Iterable[str]) -> Iterator[str]:
    return (value for value in values if not _COMMON_WORD.fullmatch(value))
