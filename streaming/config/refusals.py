"""What is wrong with a setting: where it stands, why it is refused, and what was given if it may be shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr

from streaming.config.redaction import hide_users, shown


def refusal_line(error: Any, settings: type[BaseModel]) -> str:  # noqa: ANN401 - pydantic's error details
    """One of pydantic's errors as a line."""
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: no such setting"
    message = hide_users(error["msg"].removeprefix("Value error, "))
    return f"{place + ': ' if place else ''}{message}{_given(error, settings)}"


def _given(error: Any, settings: type[BaseModel]) -> str:  # noqa: ANN401 - as above
    value = error["input"]
    if isinstance(value, (dict, list)) or not is_plain(error["loc"], settings):
        return ""
    if isinstance(value, str) and "://" not in value:
        value = value.rpartition("@")[2]  # an address without a scheme may have a user, too
    return f" (got {shown(value)!r})"


def is_plain(place: Sequence[str | int], section: type[BaseModel]) -> bool:
    """Whether a place in the settings holds one value that is known to be no secret.

    Not plain are sections, for a whole one may have been given as text, maps with free names, and secrets.
    """
    steps = iter(place)
    for step in steps:
        field = section.model_fields.get(str(step))
        if field is None:
            return False
        types = list(_types(field.annotation))
        inner = [known for known in types if isinstance(known, type) and issubclass(known, BaseModel)]
        if not inner:
            return not {SecretStr, dict} & set(types)
        section = inner[0]
        if dict in types:
            next(steps, None)  # the name of one of several sections
    return False


def _types(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Every type that an annotation is made of."""
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from _types(part)
