"""Checks the parameters of a request to the API. The OpenAPI document defines the parameters of each address.

1. If the document does not contain a parameter, or if the document does not allow its value, the monitor refuses the
   request. Without this rule, a request with a spelling mistake in the name of a filter would return all groups.
2. An empty value counts as missing, as on the pages.
3. `past.parameters` checks `at`, `from` and `to`, because it knows which combinations an address allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from streaming.page.addresses import parameters, parse_whole_number
from streaming.page.api.openapi import openapi_document
from streaming.page.past.parameters import PARAMETERS, is_answerable

_Schemas = Mapping[str, Mapping[str, Any]]
"""The schema of each parameter of an address, by name."""


def parameter_refusal(path: str, query: str) -> str | None:
    """Return the reason why the query is not allowed for an address of the API. Return None if there is no reason.

    >>> parameter_refusal("/api/v1/events", "limit=0"), parameter_refusal("/api/v1/groups", "limit=0&q=")
    ('`limit` must be a whole number from 1 to 1,000', None)
    >>> parameter_refusal("/api/v1/incidents/0a", "cluster=eu")
    'unknown parameter `cluster`: this address has no parameters'
    """
    by_path, by_prefix = _known_addresses()
    schemas = by_path.get(path)
    if schemas is None:
        schemas = next((schemas for prefix, schemas in by_prefix.items() if path.startswith(prefix)), None)
    if schemas is None:
        return None
    for name, value in parameters(query):
        if name in PARAMETERS and is_answerable(path):
            continue
        if name not in schemas:
            known = f"the parameters {_quote(schemas)}" if schemas else "no parameters"
            return f"unknown parameter `{name}`: this address has {known}"
        if value and (allowed := _allowed_values(schemas[name], value)) is not None:
            return f"`{name}` must be {allowed}"
    return None


def _allowed_values(schema: Mapping[str, Any], value: str) -> str | None:
    """If the schema does not allow the value, return a description of the allowed values."""
    if "enum" in schema:
        return None if value in schema["enum"] else f"one of {_quote(schema['enum'])}"
    if schema["type"] == "integer":
        smallest, largest, number = schema["minimum"], schema["maximum"], parse_whole_number(value)
        is_allowed = number is not None and smallest <= number <= largest
        return None if is_allowed else f"a whole number from {smallest} to {largest:,}"
    return None


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@lru_cache(maxsize=1)
def _known_addresses() -> tuple[Mapping[str, _Schemas], Mapping[str, _Schemas]]:
    """Return the parameters by address. For addresses that contain a name, the key is the part before the name."""
    known = {
        path: {one["name"]: one["schema"] for one in methods["get"].get("parameters", ()) if one["in"] == "query"}
        for path, methods in openapi_document()["paths"].items()
    }
    by_prefix = {path.partition("{")[0]: schemas for path, schemas in known.items() if "{" in path}
    return {path: schemas for path, schemas in known.items() if "{" not in path}, by_prefix
