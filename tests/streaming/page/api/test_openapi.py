"""Tests of the OpenAPI document: it is valid, and it describes real responses in both directions."""

from __future__ import annotations

import copy
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from streaming.delta.cells import utc
from streaming.evaluation.causes.cause import STOPPED, Cause
from streaming.evaluation.incidents.incident import Link
from streaming.page.addresses import GROUP_API, group_address
from streaming.page.api import as_json, documents, past_json
from streaming.page.api.documents import LagCause
from streaming.page.api.event_reader import EventReader
from streaming.page.api.openapi import ADDRESS, openapi_document
from streaming.page.api.past_documents import StoredCause
from streaming.page.application import Pages
from streaming.page.finding.search import FILTERS
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, HOSTILE_NAMES, NOW_MS, STRATEGIES, Scene, scene
from tests.streaming.page.test_application import ask, cluster_view, fields_of
from tests.streaming.page.test_incidents import OLD, incident_of, write_rows
from tests.streaming.page.timeline.stored import write_lag

TWIN = "twin"


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = scene(tmp_path_factory.mktemp("tables"))
    write_lag(made.tables, "billing", 60, 0, lambda age: 40 + int(age), range(3))
    write_rows(made.tables, incident_of(["nightly-batch"], end_ms=OLD + 1))
    return made


def _pages(page_scene: Scene, clusters: tuple[str, ...] = (CLUSTER,), now_ms: int = NOW_MS) -> Pages:
    views = [cluster_view(name, page_scene.monitor_state, page_scene.tables, now_ms) for name in clusters]
    return Pages(views, STRATEGIES, None, EventReader(str(page_scene.tables)))


def _strict(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with schemas that allow no unknown fields, so that a missing definition is a failure."""
    strict = copy.deepcopy(dict(document))
    for schema in strict["components"]["schemas"].values():
        schema["additionalProperties"] = False
    return strict


def _schema_of(document: Mapping[str, Any], path: str, status: str) -> dict[str, Any]:
    response = document["paths"][path]["get"]["responses"][status]
    schema: dict[str, Any] = response["content"]["application/json"]["schema"]
    return {**schema, "components": document["components"]}


def test_the_document_is_valid_openapi(page_scene: Scene) -> None:
    document = ask(_pages(page_scene), ADDRESS).json()
    validate(document)
    assert document == openapi_document()


GROUP = "/api/v1/groups/{group_id}"
OPEN_INCIDENT = "399299f72b98"
"""The id of the incident of the scene. It depends only on the facts of the scene."""

CASES = [
    ("/api/v1/groups", "/api/v1/groups", "200", "the groups of the scene have every kind of trouble"),
    ("/api/v1/groups?q=no-such", "/api/v1/groups", "200", "an empty list"),
    ("/api/v1/groups?sort=lag&state=Stable&limit=2", "/api/v1/groups", "200", "filters do not change the fields"),
    ("/api/v1/groups?cluster=no-such", "/api/v1/groups", "404", "a cluster that is not watched"),
    ("/api/v1/groups/fraud-detection", GROUP, "200", "drift, misplaced partitions and a what-if"),
    ("/api/v1/groups/billing", GROUP, "200", "commit gaps and rebalances"),
    ("/api/v1/groups/reporting", GROUP, "200", "a group without members: most fields are null"),
    ("/api/v1/groups/clickstream", GROUP, "200", "active conditions"),
    ("/api/v1/groups/no-such", GROUP, "404", "a group that does not exist"),
    *((group_address(name, GROUP_API), GROUP, "200", "a hostile name") for name in HOSTILE_NAMES),
    ("/api/v1/groups?at=1795300000000", "/api/v1/groups", "200", "all groups as of a moment"),
    ("/api/v1/groups?at=x", "/api/v1/groups", "400", "not a moment"),
    ("/api/v1/groups?at=1000000000000", "/api/v1/groups", "404", "a moment before the first row"),
    ("/api/v1/groups?nosuch=1", "/api/v1/groups", "400", "an unknown parameter"),
    ("/api/v1/groups/billing?nosuch=1", GROUP, "400", "an unknown parameter"),
    ("/api/v1/incidents?nosuch=1", "/api/v1/incidents", "400", "an unknown parameter"),
    ("/api/v1/events?limit=0", "/api/v1/events", "400", "a limit that is too small"),
    (f"{ADDRESS}?nosuch=1", ADDRESS, "400", "an unknown parameter"),
    ("/api/v1/groups/billing?at=1795300000000", GROUP, "200", "a group as of a moment"),
    ("/api/v1/groups/clickstream?at=1795300000000", GROUP, "200", "active conditions as of a moment"),
    ("/api/v1/groups/billing?from=1&to=3", GROUP, "200", "two generations"),
    ("/api/v1/groups/billing?from=1&to=9999999", GROUP, "404", "generations that the tables do not have"),
    ("/api/v1/groups/billing?from=1", GROUP, "400", "one of two generations"),
    ("/api/v1/incidents?at=1795300000000", "/api/v1/incidents", "400", "incidents as of a moment"),
    ("/api/v1/events?at=1795300000000", "/api/v1/events", "400", "events as of a moment"),
    ("/api/v1/incidents", "/api/v1/incidents", "200", "open incidents"),
    (f"/api/v1/incidents/{OPEN_INCIDENT}", "/api/v1/incidents/{incident_id}", "200", "an open incident"),
    ("/api/v1/incidents?cluster=x", "/api/v1/incidents", "404", "a cluster that is not watched"),
    ("/api/v1/incidents/000000000000", "/api/v1/incidents/{incident_id}", "404", "an incident that does not exist"),
    ("/api/v1/events", "/api/v1/events", "200", "all stored events"),
    ("/api/v1/events?since=x", "/api/v1/events", "400", "not a cursor"),
    ("/api/v1/events?cluster=x", "/api/v1/events", "404", "a cluster that is not watched"),
]


@pytest.mark.parametrize(("address", "path", "status", "why"), CASES)
def test_a_real_response_matches_its_schema(page_scene: Scene, address: str, path: str, status: str, why: str) -> None:
    """A client that is generated from the document must be able to read every response."""
    answer, document = ask(_pages(page_scene), address), openapi_document()
    assert answer.status.startswith(status), why
    for each in (document, _strict(document)):
        errors = list(Draft202012Validator(_schema_of(each, path, status)).iter_errors(answer.json()))
        assert errors == [], why


def _too_old(cursor: str) -> str:
    """Return a cursor of a table that was created again."""
    start, encoded = cursor.split(".", 1)
    since_ms, positions = json.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    positions = {name: ["another table", *position[1:]] for name, position in positions.items()}
    return f"{start}.{urlsafe_b64encode(json.dumps([since_ms, positions]).encode()).decode().rstrip('=')}"


def test_responses_without_tables_and_to_an_old_cursor_match(page_scene: Scene, tmp_path: Path) -> None:
    """A client sees these statuses only in an incident, so nobody notices that their schema is wrong."""
    cursor = _too_old(ask(_pages(page_scene), "/api/v1/events").json()["next"])
    without_tables = _pages(Scene(page_scene.monitor_state, tmp_path))
    for pages, address, path, status in (
        (_pages(page_scene), f"/api/v1/events?since={cursor}", "/api/v1/events", "410"),
        (without_tables, "/api/v1/events", "/api/v1/events", "503"),
        (without_tables, "/api/v1/incidents/000000000000", "/api/v1/incidents/{incident_id}", "503"),
        (without_tables, "/api/v1/incidents", "/api/v1/incidents", "200"),
        (without_tables, "/api/v1/groups?at=1795300000000", "/api/v1/groups", "503"),
        (without_tables, "/api/v1/groups/billing?at=1795300000000", GROUP, "503"),
    ):
        answer = ask(pages, address)
        assert answer.status.startswith(status), address
        schema = _schema_of(_strict(openapi_document()), path, status)
        assert list(Draft202012Validator(schema).iter_errors(answer.json())) == [], address


@pytest.mark.parametrize("address", ["/api/v1/groups", "/api/v1/groups/billing"])
def test_responses_of_a_stale_or_starting_monitor_and_of_several_clusters_match(
    page_scene: Scene, tmp_path: Path, address: str
) -> None:
    """Unknown values are null, and the schema allows it."""
    path = "/api/v1/groups" if address.endswith("groups") else GROUP
    starting = Pages([cluster_view(CLUSTER, MonitorState(), tmp_path)], ())
    several = "200" if path == "/api/v1/groups" else "300"
    for pages, status in (
        (_pages(page_scene, now_ms=NOW_MS + 3_600_000), "200"),
        (starting, "503"),
        (_pages(page_scene, (CLUSTER, TWIN)), several),
    ):
        answer = ask(pages, address)
        assert answer.status.startswith(status)
        schema = _schema_of(_strict(openapi_document()), path, status)
        assert list(Draft202012Validator(schema).iter_errors(answer.json())) == []


def test_a_response_with_a_wrong_type_or_a_missing_field_does_not_match(page_scene: Scene) -> None:
    """Without this test, a schema that allows everything would pass all other tests."""
    document = ask(_pages(page_scene), "/api/v1/groups/billing").json()
    validator = Draft202012Validator(_schema_of(openapi_document(), GROUP, "200"))
    for wrong in ({"lag": "12"}, {"members": None}, {"partitions": [{}]}, {"phase": "fine"}):
        assert not validator.is_valid({**document, **wrong})
    for name in document:
        assert not validator.is_valid({key: value for key, value in document.items() if key != name}), name


def test_every_filter_is_a_parameter_and_every_address_is_described(page_scene: Scene) -> None:
    paths = openapi_document()["paths"]
    assert {one["name"] for one in paths["/api/v1/groups"]["get"]["parameters"]} >= set(FILTERS)
    for path in paths:
        assert ask(
            _pages(page_scene), path.replace("{group_id}", "billing").replace("{incident_id}", OPEN_INCIDENT)
        ).status != "404 Not Found" or path.endswith("/")


def test_the_schema_has_no_field_that_no_response_has(page_scene: Scene) -> None:
    """A documented field that does not exist breaks programs."""
    answers = [ask(_pages(page_scene), address).json() for address, *_ in CASES]
    known = {name for answer in answers for name in fields_of(answer)}
    schemas = openapi_document()["components"]["schemas"]
    unused = {name for schema in schemas.values() for name in schema["properties"]} - known
    assert unused <= {
        *schemas["LagCause"]["properties"],  # no group of the scene is late for a minute
        *schemas["TopicLoad"]["properties"],
        *schemas["Work"]["properties"],
        *schemas["Link"]["properties"],  # the incident of the scene has one group
    }


def test_the_types_have_the_fields_of_responses_that_the_scene_does_not_contain() -> None:
    """Without this test, nobody compares the cause of a late group and the links of an incident with their types."""
    causes = as_json._cause(Cause(STOPPED)), past_json._cause(defaultdict(str, since_time=utc(NOW_MS)))
    for fields, typed in (
        (causes[0], LagCause),
        (causes[1], StoredCause),
        (Link("topic", "orders")._asdict(), documents.Link),
    ):
        assert fields.keys() == typed.__annotations__.keys()
