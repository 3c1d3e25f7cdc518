"""Reads the descriptions of the fields of the API from `API.md`.

1. The line below a heading names the schemas that the section describes, for example "Schemas: `Cluster`, `Error`."
   Sections without this line describe no fields.
2. Each row of the section describes the fields in its first column. The description applies to all schemas of the
   section that have the field.
3. If two sections describe the same field of a schema, the later section applies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

_HEADING = re.compile(r"^#+ ", re.MULTILINE)
_SCHEMAS = re.compile(r"(?P<heading>.+)\nSchemas: (?P<schemas>.+)\.\n")
_ROW = re.compile(r"^\| (`[^|]+) \| (.+) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


class Section(NamedTuple):
    """A section of `API.md`, the names of its schemas, and the descriptions of its fields by name."""

    heading: str
    schemas: Sequence[str]
    fields: Mapping[str, str]


def sections_of(text: str) -> Sequence[Section]:
    r"""Return the sections that describe fields (rules 1 and 2). Links in descriptions are replaced by their text.

    >>> sections_of("## Lag\nSchemas: `A`, `B`.\n\n| `lag`, `late` | see [rates](#rates) |\n\n## Rates\n| `rate` | x |")
    [Section(heading='Lag', schemas=['A', 'B'], fields={'lag': 'see rates', 'late': 'see rates'})]
    """
    found = [(one, part) for part in _HEADING.split(text) if (one := _SCHEMAS.match(part))]
    return [Section(one["heading"], _NAME.findall(one["schemas"]), _fields_of(part)) for one, part in found]


def _fields_of(section: str) -> Mapping[str, str]:
    return {
        name: _LINK.sub(r"\1", description)
        for names, description in _ROW.findall(section)
        for name in _NAME.findall(names)
    }


def documentation() -> str:
    """Return the text of `API.md`."""
    return files("streaming.page").joinpath("API.md").read_text(encoding="utf-8")


def field_descriptions() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each field, by schema and by name (rule 3)."""
    descriptions: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for section in sections_of(documentation()):
        for schema in section.schemas:
            descriptions[schema].update(section.fields)
    return dict(descriptions)
