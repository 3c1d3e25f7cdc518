"""Describe an invalid setting in one line: its name, the error, and the rejected value without secrets.

Other functions of this module describe a file or a variable that cannot be parsed. They never show the content.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from streaming.config.environment import ENVIRONMENT_PREFIX, is_setting
from streaming.config.secret_settings import ADDRESS, hide_credentials, hide_secrets
from streaming.config.section import types_in

_SECURITY = "security"
"""Errors never show a value of this section, because a user can write a password into the wrong setting by mistake."""

_WRONG_TYPES: Final = {
    "string": "write a text in quotes",
    "int": "write a whole number",
    "float": "write a number",
    "bool": "write true or false",
}
"""The remedies for pydantic's errors `string_type`, `int_parsing` and so on."""


def refusal_line(error: Any, settings: type[BaseModel]) -> str:  # noqa: ANN401 - pydantic's error details
    """Convert one error of pydantic to one line of text."""
    path = _path(error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{path}: no such setting"
    message = _type_remedy(error) or hide_credentials(error["msg"].removeprefix("Value error, "))
    return f"{path + ': ' if path else ''}{message}{_rejected_value(error, settings)}"


def unreadable_file_line(file: Path | None, error: Exception) -> str:
    """Describe why a file is not a TOML file."""
    if isinstance(error, UnicodeDecodeError):
        return f"{file}: not a text in UTF-8: save the file in the encoding UTF-8"
    if not isinstance(error, OSError) and file is not None and file.read_bytes().startswith(BOM_UTF8):
        return f"{file}: the file starts with a byte order mark: save the file as UTF-8 without a byte order mark"
    return f"{file}: {error}"


def unreadable_variable_line(error: Exception) -> str:
    """Describe which environment variable is not JSON.

    pydantic's error contains only the section and the value, so the function searches for the variable.
    """
    remedy = "write lists and tables as JSON"
    cause = error.__cause__
    if not isinstance(cause, JSONDecodeError):
        return f"environment: {error}: {remedy}"
    names = []
    for name, value in sorted(os.environ.items()):
        section = name.upper().removeprefix(ENVIRONMENT_PREFIX).partition("__")[0].lower()
        if is_setting(name) and value == cause.doc and f'"{section}"' in str(error):
            names.append(name)
    return f"{' or '.join(names)}: not valid JSON from character {cause.pos + 1}: {remedy}"


def _type_remedy(error: Any) -> str | None:  # noqa: ANN401 - as above
    location, (kind, _, problem) = error["loc"], error["type"].partition("_")
    path, is_section = _path(location), len(location) == 1
    if error["type"] == "model_type":
        return "write a table" if isinstance(location[-1], int) else f"write the settings in a section [{path}]"
    if error["type"] == "dict_type":
        return f"write the settings in a section [{path}{'.NAME' if is_section else ''}]"
    if error["type"] == "tuple_type":
        entries = f"write each entry in a section [[{path}]] (in an environment variable: a JSON list)"
        return entries if is_section else 'write a list, for example ["a", "b"]'
    return _WRONG_TYPES.get(kind) if problem in {"type", "parsing", "from_float"} else None


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
    return f" (got {str(value).lower() if isinstance(value, bool) else repr(hide_secrets(value))})"


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
        types = list(types_in(field.annotation))
        subsections = [part for part in types if isinstance(part, type) and issubclass(part, BaseModel)]
        if not subsections:
            return not any(one in (SecretStr, dict, ADDRESS) for one in (*types, *field.metadata))
        section = subsections[0]
        if {dict, tuple} & set(types):
            next(steps, None)  # skip NAME of a section [clusters.NAME], or the number of an entry [[groups]]
    return False
