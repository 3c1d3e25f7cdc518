"""Base class of all sections of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from streaming.config.secret_settings import hide_secrets


class Section(BaseModel):
    """A section of the settings.

    A section is immutable, rejects unknown settings, and hides secrets in its `repr`. A section also rejects `true` and
    `false` as values of a number. pydantic alone would read them as 1 and 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _check_number(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - the value of any setting
        if isinstance(value, bool):
            types = list(types_in(cls.model_fields[str(info.field_name)].annotation))
            if bool not in types and (int in types or float in types):
                raise ValueError("write a number")
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Return all fields. Secrets are hidden, because a traceback can print the fields."""
        for name, value in super().__repr_args__():
            yield name, value if isinstance(value, Section) else hide_secrets(value)


def types_in(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Yield each type in the annotation of a setting.

    >>> list(types_in(dict[str, int]))
    [<class 'dict'>, <class 'str'>, <class 'int'>]
    """
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from types_in(part)
