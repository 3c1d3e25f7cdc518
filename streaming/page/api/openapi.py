"""Builds the OpenAPI document (version 3.1) of the API.

The schemas come from the types in `documents`. The descriptions of fields come from `field_descriptions`. The filters
come from `finding.search`. Schemas allow unknown fields, because later versions can add fields. `api.parameters` checks
requests against the parameters in this document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from streaming.page.addresses import MAX_LISTED
from streaming.page.api.documents import (
    DEFAULT_EVENTS,
    MAX_EVENTS,
    Error,
    Events,
    EventsError,
    GroupDocument,
    GroupList,
    IncidentDocument,
    IncidentList,
)
from streaming.page.api.field_descriptions import field_descriptions
from streaming.page.api.past_documents import Comparison, PastError, PastGroupDocument, PastGroupList
from streaming.page.finding.search import FILTERS, SORTS, WITHOUT_PAST

ADDRESS = "/api/v1/openapi.json"
_SCHEMAS = "#/components/schemas/"
_Response = tuple[str, str, tuple[str, ...]]
"""A status, its description, and the names of schemas. The response matches one of these schemas.

If there are no names, the response can be any object.
"""

_UNKNOWN: _Response = (
    "404",
    "The cluster or the group does not exist, or the tables contain no rows for the requested time.",
    ("Error", "PastError"),
)
_UNKNOWN_INCIDENT: _Response = ("404", "The cluster or the incident does not exist.", ("Error",))
_NO_INCIDENT_TABLE: _Response = (
    "503",
    "The monitor cannot read the table of incidents, so it does not know whether the incident exists.",
    ("Error",),
)
_NO_MOMENT: _Response = (
    "400",
    "A parameter is unknown or invalid. Or this combination of `at`, `from` and `to` is not possible.",
    ("Error", "PastError"),
)
_NO_LIST: _Response = (
    "400",
    (
        "Possible reasons: a parameter is unknown or invalid; the request contains `from` or `to`; a filter or the"
        " order is not possible together with `at`."
    ),
    ("Error", "PastError"),
)
_NO_PAST: _Response = (
    "400",
    "A parameter is unknown or invalid, or the request contains `at`, `from` or `to`.",
    ("Error", "PastError"),
)
_WRONG_QUERY: _Response = ("400", "The query is invalid, or it contains a parameter.", ("Error",))
_TOO_MANY_REQUESTS = "The client's address has more than 32 requests at the same time. This response is plain text."
_NO_USER = "The request does not contain the name and the password of a user. This response is plain text."
_PLAIN_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_ONLY_PRESENT = " This parameter is not possible together with `at`."
_CATCHING_UP: _Response = (
    "503",
    (
        "Possible reasons: the monitor still reads `__consumer_offsets` for the first time; the monitor cannot read the"
        " tables; too many requests read the tables at the same time."
    ),
    ("Error", "PastError"),
)


@lru_cache(maxsize=1)
def openapi_document() -> Mapping[str, Any]:
    """Return the OpenAPI document."""
    cluster = _parameter("cluster", "Name of a cluster. The response contains only this cluster.")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kafka-rebalance-monitor",
            "version": "v1",
            "description": "Consumer groups, their lag, and their events. null means unknown or no value. Times are"
            " milliseconds since 1970 (UTC). Names come from clients, so escape names before you show them.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"basic": []}],
        "paths": {
            **_group_paths(cluster),
            **_incident_paths(cluster),
            **_event_paths(cluster),
            ADDRESS: _get("getOpenApi", "This document", [], (("200", "The OpenAPI document.", ()), _WRONG_QUERY)),
        },
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": _schemas(),
        },
    }


def _group_paths(cluster: Mapping[str, Any]) -> dict[str, Any]:
    filters = [
        _parameter(
            name,
            f"The response contains only groups that match this `{name}` (see"
            f" API.md).{_ONLY_PRESENT * (name in WITHOUT_PAST)}",
        )
        for name in FILTERS
    ]
    at = _parameter(
        "at",
        "A time in UTC, or milliseconds since 1970. With `at`, the response describes the groups at this time. All"
        " values come from the tables.",
    )
    generations = [
        _parameter(name, "A generation or a time. With `from` and `to`, the response compares two generations.")
        for name in ("from", "to")
    ]
    of_group = [at, *generations, cluster]
    several = "Several clusters have a group with this id. Repeat the request with `cluster`."
    group: tuple[_Response, ...] = (
        ("200", "The group.", ("GroupDocument", "PastGroupDocument", "Comparison")),
        ("300", several, ("Error", "PastError")),
        _NO_MOMENT,
        _UNKNOWN,
        _CATCHING_UP,
    )
    order = _parameter(
        "sort",
        "The order of the groups. The default is `trouble`. The values"
        f" {', '.join(f'`{name}`' for name in WITHOUT_PAST)} are not possible together with `at`.",
        {"type": "string", "enum": list(SORTS)},
    )
    limit = _parameter("limit", "Maximum number of groups.", {"type": "integer", "minimum": 0, "maximum": MAX_LISTED})
    return {
        "/api/v1/groups": _get(
            "listGroups",
            "All groups that match the filters, in the requested order",
            [*filters, order, limit, at, cluster],
            (("200", "The groups.", ("GroupList", "PastGroupList")), _NO_LIST, _UNKNOWN, _CATCHING_UP),
        ),
        "/api/v1/groups/{group_id}": _get(
            "getGroup",
            "One group",
            [_in_path("group_id", "The percent-encoded id of the group. Also percent-encode slashes."), *of_group],
            group,
        ),
        "/api/v1/groups/": _get(
            "getGroupWithAnyId",
            "One group whose id is `.`, `..` or empty",
            [_parameter("id", "The id of the group."), *of_group],
            group,
        ),
    }


def _incident_paths(cluster: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "/api/v1/incidents": _get(
            "listIncidents",
            "The open incidents, and the incidents that ended in the last seven days",
            [_parameter("group", "The response contains only incidents with evidence about this group."), cluster],
            (("200", "The incidents.", ("IncidentList",)), _NO_PAST, _UNKNOWN_INCIDENT),
        ),
        "/api/v1/incidents/{incident_id}": _get(
            "getIncident",
            "One incident",
            [_in_path("incident_id", "The id of the incident.")],
            (("200", "The incident.", ("IncidentDocument",)), _NO_PAST, _UNKNOWN_INCIDENT, _NO_INCIDENT_TABLE),
        ),
    }


def _event_paths(cluster: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "/api/v1/events": _get(
            "listEvents",
            "Each rebalance, each start and end of a condition or a cause of lag, and each change of an incident",
            [
                _parameter(
                    "since",
                    "A cursor (`next` of the last response), or a time. Without `since`, the first response starts with"
                    " the oldest event in the tables.",
                ),
                _parameter("limit", "Maximum number of events.", _EVENT_LIMIT),
                cluster,
            ],
            (
                ("200", "The events.", ("Events",)),
                (
                    "400",
                    "A parameter is unknown or invalid, or the request contains `at`, `from` or `to`.",
                    ("Error", "EventsError", "PastError"),
                ),
                ("404", "The cluster does not exist.", ("EventsError",)),
                ("410", "The cursor is no longer valid. Send a request with a time as `since`.", ("EventsError",)),
                (
                    "503",
                    "The monitor cannot read the tables now. Repeat the request with the same cursor.",
                    ("EventsError",),
                ),
            ),
        ),
    }


_EVENT_LIMIT = {"type": "integer", "minimum": 1, "maximum": MAX_EVENTS, "default": DEFAULT_EVENTS}


def _parameter(name: str, description: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema or {"type": "string"}}


def _in_path(name: str, description: str) -> dict[str, Any]:
    return {**_parameter(name, description), "in": "path", "required": True}


def _get(
    operation: str,
    summary: str,
    parameters: Sequence[Mapping[str, Any]],
    responses: Sequence[_Response],
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for status, description, names in responses:
        schema = {"anyOf": [{"$ref": f"{_SCHEMAS}{name}"} for name in names]} if names else {"type": "object"}
        answers[status] = {"description": description, "content": {"application/json": {"schema": schema}}}
    busy = answers.get("503", {"description": "", "content": {}})
    answers["401"] = {"description": _NO_USER, "content": _PLAIN_TEXT}
    answers["503"] = {
        "description": f"{busy['description']} {_TOO_MANY_REQUESTS}".strip(),
        "content": {**busy["content"], **_PLAIN_TEXT},
    }
    return {"get": {"operationId": operation, "summary": summary, "parameters": list(parameters), "responses": answers}}


def _schemas() -> dict[str, Any]:
    types = [
        *(GroupList, GroupDocument, Error, Events, EventsError, IncidentList, IncidentDocument),
        *(PastGroupList, PastGroupDocument, Comparison, PastError),
    ]
    _, schemas = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
    descriptions = field_descriptions()
    return {name: _described(schema, descriptions.get(name, {})) for name, schema in sorted(schemas.items())}


def _described(schema: Mapping[str, Any], descriptions: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema with the descriptions of its fields. The first line of its docstring describes the schema.

    In the description, `null` replaces None. Only the schemas in `_WITH_OPTIONAL_FIELDS` have optional fields. A
    response always contains all other fields, so the schemas have no default values.
    """
    properties = {
        name: {
            **{key: value for key, value in field.items() if key != "default"},
            "description": descriptions[name],
        }
        for name, field in schema["properties"].items()
    }
    optional = set(properties) - set(schema.get("required", ())) if schema["title"] in _WITH_OPTIONAL_FIELDS else set()
    required = sorted(set(properties) - optional)
    summary = schema["description"].partition("\n")[0].replace("None", "null")
    return {"type": "object", "description": summary, "properties": properties, "required": required}


_WITH_OPTIONAL_FIELDS = frozenset({"GroupList", "Error", "IncidentList"})
