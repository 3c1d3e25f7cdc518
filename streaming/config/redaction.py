"""What may be shown of the settings: one rule for `config check`, errors, log lines, Spark's pages and command lines.

1. A value in a map whose names are free (`spark.conf`) is shown only if its name is known to hold no secret. A list of
   secret names is never complete: `fs.azure.account.key.ACCOUNT` and `fs.azure.sas.CONTAINER` name the account.
2. Of a URI, neither the part between `://` and its last `@` nor the part after its first `?` is shown: secrets contain
   `/`, `:` and `@`.
3. What rules 1 and 2 hide, and every secret that is set or read from a file, is taken out of log lines and errors.
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
_CREDENTIALS = re.compile(r"(?<=://).*@", re.DOTALL)
_PLAIN = re.compile(r"-?[0-9.]+[a-zA-Z]{0,3}|true|false|[a-z]{1,7}", re.IGNORECASE)
"""A number, a size, a word: too common in a log to be taken out of it."""
_ASSIGNED = re.compile(r'=\s*"([^"]+)"|=([^\s;"]+)')
_SHORTEST_SECRET = 4
_ADDRESSES_FOR_LAUNCH = ("spark.master", "spark.jars", "spark.files", "spark.archives", "spark.submit.")


def is_harmless(name: str) -> bool:
    """Whether the value of a setting of Spark is known to be no secret (rule 1).

    >>> is_harmless("spark.sql.shuffle.partitions"), is_harmless("spark.hadoop.fs.azure.account.key.mine")
    (True, False)
    """
    return bool(_HARMLESS.fullmatch(name)) and not _SUSPICIOUS.search(name)


def is_for_launch(name: str) -> bool:
    """Whether a setting holds addresses that only Spark's launch can use, so that they stand on a command line.

    >>> is_for_launch("spark.jars.repositories"), is_for_launch("spark.driver.extraJavaOptions")
    (True, False)
    """
    return name.startswith(_ADDRESSES_FOR_LAUNCH)


def hide_users(text: str) -> str:
    """A text without the users and passwords of the URIs in it; what stands between two URIs goes with them."""
    return _CREDENTIALS.sub(f"{REDACTED}@", text)


def without_credentials(text: str) -> str:
    """A setting's value as it may be shown (rule 2).

    >>> without_credentials("s3a://AKIA:ab/c@d@bucket/tables?sig=x")
    's3a://*********(redacted)@bucket/tables?*********(redacted)'
    >>> without_credentials("s3a://bucket/tables?sig=x@y")
    's3a://*********(redacted)'
    """
    scheme, mark, rest = text.partition("://")
    users, at, place = rest.rpartition("@")
    if not mark or "?" in users:  # the last @ may belong to the query, and what follows it, too
        return f"{scheme}{mark}{REDACTED}" if mark else text
    address, question, _ = place.partition("?")
    return "".join((scheme, mark, f"{REDACTED}@" if at else "", address, f"?{REDACTED}" if question else ""))


def shown(value: Any) -> Any:  # noqa: ANN401 - any part of the settings
    """A value of the settings as it may be shown."""
    if isinstance(value, SecretStr):
        return REDACTED
    if isinstance(value, Mapping):
        return {key: _shown_by_name(str(key), inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return without_credentials(value) if isinstance(value, str) and "://" in value else value


def _shown_by_name(name: str, value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, SecretStr) and is_harmless(name):
        return without_credentials(value.get_secret_value())
    return value if isinstance(value, BaseModel) else shown(value)


class Redactor:
    """Takes known secrets out of texts (rule 3)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        longest_first = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        return self._secrets.sub(REDACTED, text) if self._secrets else text


def secrets_in(settings: BaseModel) -> Iterator[str]:
    """Every text in the settings that is hidden."""
    for _, value in settings:
        yield from _secrets_of(value)


def _secrets_of(value: Any) -> Iterator[str]:  # noqa: ANN401 - any part of the settings
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        yield from secrets_in(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _of_free_name(name, inner) if isinstance(inner, SecretStr) else _secrets_of(inner)
    elif isinstance(value, str):
        yield from _credentials_in(value)


def _of_free_name(name: str, value: SecretStr) -> Iterator[str]:
    """A value of a map; of `-Dname=value` and `name="value";` also the value alone, which may be logged by itself."""
    text = value.get_secret_value()
    yield from _credentials_in(text)
    if not is_harmless(name):
        parts = (quoted or bare for quoted, bare in _ASSIGNED.findall(text))
        yield from (part for part in (text, *parts) if not _PLAIN.fullmatch(part))


def _credentials_in(uri: str) -> Iterator[str]:
    """A URI with a password or a query, what is secret in it, and the password alone.

    A user alone may be a container of Azure's, which is no secret. Any `@` may be the end of the password.
    """
    _, mark, rest = uri.partition("://")
    _, question, query = rest.partition("?")
    user, colon, _ = rest.rpartition("@")[0].partition(":")
    if mark and (question or colon):
        yield from (uri, query)
        for end in re.finditer("@", rest) if colon else ():
            yield from (rest[: end.start()], rest[len(user) + 1 : end.start()])
