"""Describe an invalid setting in one line: its name, the error, and the rejected value without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr

from streaming.config.secret_settings import ADDRESS, hide_credentials, hide_secrets

_SECURITY = "security"
"""Errors never show a value of this section, because a user can write a password into the wrong setting by mistake."""


def refusal_line(error: Any, settings: type[BaseModel]) -> str:  # noqa: ANN401 - pydantic's error details
    """Convert one error of pydantic to one line of text."""
    path = _path(error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{path}: no such setting"
    message = hide_credentials(error["msg"].removeprefix("Value error, "))
    return f"{path + ': ' if path else ''}{message}{_rejected_value(error, settings)}"


def _path(location: Sequence[str | int]) -> str:
    """Return the path of a setting as text. Entries are numbered from 1, as in `config check --group`.

    >>> _path(("metrics", "port")), _path(("groups", 0, "severity"))
    ('metrics.port', '[[groups]] entry 1, severity')
    """
    section, *rest = location or ("",)
    if rest and isinstance(rest[0], int):
        return ", ".join([f"[[{section}]] entry {rest[0] + 1}", *map(str, rest[1:])])
    return ".".join(map(str, location))


def _rejected_value(error: Any, settings: type[BaseModel]) -> str:  # noqa: ANN401 - as above
    value = error["input"]
    if isinstance(value, (dict, list)) or _SECURITY in error["loc"] or not is_plain(error["loc"], settings):
        return ""
    return f" (got {hide_secrets(value)!r})"


def is_plain(path: Sequence[str | int], section: type[BaseModel]) -> bool:
    """Return True if a setting is a single value that contains no secret.

    Return False for secrets, addresses, sections, and maps in which the user chooses the names. A section can contain
    secrets, so its value is not shown.
    """
    steps = iter(path)
    for step in steps:
        field = section.model_fields.get(str(step))
        if field is None:
            return False
        types = list(_types_in(field.annotation))
        subsections = [part for part in types if isinstance(part, type) and issubclass(part, BaseModel)]
        if not subsections:
            return not any(one in (SecretStr, dict, ADDRESS) for one in (*types, *field.metadata))
        section = subsections[0]
        if {dict, tuple} & set(types):
            next(steps, None)  # skip NAME of a section [clusters.NAME], or the number of an entry [[groups]]
    return False


def _types_in(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from _types_in(part)
