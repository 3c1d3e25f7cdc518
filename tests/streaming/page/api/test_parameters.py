"""Tests that the API refuses parameters and values that the OpenAPI document does not contain."""

from __future__ import annotations

import pytest

from streaming.http.server import MAX_REQUESTS
from streaming.page.api.event_reader import EventReader
from streaming.page.api.openapi import openapi_document
from streaming.page.application import Pages
from tests.streaming.page.scene import CLUSTER, STRATEGIES, scene
from tests.streaming.page.test_application import ask, cluster_view


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    tables = tmp_path_factory.mktemp("tables")
    view = cluster_view(CLUSTER, scene(tables).monitor_state, tables)
    return Pages([view], STRATEGIES, None, EventReader(str(tables)))


@pytest.mark.parametrize(
    ("address", "error"),
    [
        ("/api/v1/groups?nosuch=1", "unknown parameter `nosuch`: this address has the parameters `q`, `topic`,"),
        ("/api/v1/groups?at=1795300000000&nosuch=1", "unknown parameter `nosuch`"),
        ("/api/v1/groups?limit=abc", "`limit` must be a whole number from 0 to 20,000"),
        ("/api/v1/groups?limit=-1", "`limit` must be a whole number from 0 to 20,000"),
        ("/api/v1/groups?limit=20001", "`limit` must be a whole number from 0 to 20,000"),
        (f"/api/v1/groups?limit={'9' * 5_000}", "`limit` must be a whole number from 0 to 20,000"),
        ("/api/v1/groups?sort=zzz", "`sort` must be one of `trouble`, `name`,"),
        ("/api/v1/groups/billing?limit=1", "unknown parameter `limit`: this address has the parameters `at`,"),
        ("/api/v1/groups/billing?id=ledger", "unknown parameter `id`"),
        ("/api/v1/groups/?id=billing&q=x", "unknown parameter `q`: this address has the parameters `id`,"),
        ("/api/v1/incidents?limit=1", "unknown parameter `limit`: this address has the parameters `group`, `cluster`"),
        ("/api/v1/incidents/0123456789ab?cluster=x", "unknown parameter `cluster`: this address has no parameters"),
        ("/api/v1/events?limit=0", "`limit` must be a whole number from 1 to 1,000"),
        ("/api/v1/events?limit=1001", "`limit` must be a whole number from 1 to 1,000"),
        ("/api/v1/events?group=billing", "unknown parameter `group`: this address has the parameters `since`,"),
        ("/api/v1/openapi.json?at=1", "unknown parameter `at`: this address has no parameters"),
    ],
)
def test_the_api_refuses_a_parameter_or_value_that_it_does_not_have(pages: Pages, address: str, error: str) -> None:
    """The API ignored them, so a program with a spelling mistake received all groups with the status 200."""
    answer = ask(pages, address)
    assert answer.status == "400 Bad Request"
    assert answer.json()["error"].startswith(error)


@pytest.mark.parametrize("path", [path for path in openapi_document()["paths"] if "{" not in path])
def test_the_api_accepts_every_documented_parameter_and_treats_an_empty_value_as_missing(
    pages: Pages, path: str
) -> None:
    names = [one["name"] for one in openapi_document()["paths"][path]["get"].get("parameters", ())]
    assert ask(pages, f"{path}?{'&'.join(f'{name}=' for name in names)}").status in {"200 OK", "404 Not Found"}


@pytest.mark.parametrize("query", ["nosuch=1", "limit=abc", "sort=zzz"])
def test_a_page_ignores_what_the_api_refuses_and_shows_the_order(pages: Pages, query: str) -> None:
    """Somebody who writes an address by hand needs a page, and the page must not claim a wrong order."""
    answer = ask(pages, f"/?{query}")
    assert answer.status == "200 OK"
    assert "The worst groups come first." in answer.text


def test_the_document_describes_the_refusals_of_the_server() -> None:
    """The server refuses a request in plain text before it reaches the API. A generated client expected JSON."""
    for path, methods in openapi_document()["paths"].items():
        responses = methods["get"]["responses"]
        assert list(responses["401"]["content"]) == ["text/plain"], path
        assert "text/plain" in responses["503"]["content"], path
        assert f"more than {MAX_REQUESTS} requests" in responses["503"]["description"], path
