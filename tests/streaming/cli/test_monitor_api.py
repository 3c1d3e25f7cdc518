"""Tests of `rebalance-monitor groups` with the values of a running monitor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from streaming.cli.text.group_output import (
    AnsweredGroup,
    column_names,
    group_as_json,
    group_cells,
    group_table,
    reported_cells,
)
from streaming.config.links import LinkSettings
from streaming.config.load import Settings
from streaming.embedded.ports import free_port
from streaming.group.listing import ListedGroup
from streaming.http.client import MonitorNotReadableError, request_groups, request_reports
from streaming.page.application import Pages
from tests.streaming.page.scene import CLUSTER, NOW_MS, STRATEGIES, scene
from tests.streaming.page.test_application import cluster_view, pages_of


class SilentHandler(WSGIRequestHandler):
    """A handler that writes no log."""

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - the signature of the standard library
        """Write nothing."""


@contextmanager
def served(application: Any) -> Iterator[str]:  # noqa: ANN401 - any WSGI application
    """Serve an application, and return its address."""
    with make_server("127.0.0.1", 0, application, handler_class=SilentHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a scene
    return scene(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def pages(page_scene: Any) -> Pages:  # noqa: ANN401 - a scene
    return pages_of(page_scene.monitor_state, page_scene.tables)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty home folder, so that no test reads the user's passwords."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def listed(group_id: str) -> AnsweredGroup:
    return AnsweredGroup(group_id, ListedGroup("classic", "consumer", "Stable", 3), None, None)


def test_the_table_shows_lag_last_commit_rates_leader_and_timeouts_of_the_monitor(pages: Pages) -> None:
    """One truth: the values of the command are the values of the API."""
    with served(pages) as url:
        reported = request_groups(url, CLUSTER)
    known, unknown = (
        dict(
            zip(
                column_names(None, reported, verbose=True),
                group_cells(group, None, reported, verbose=True),
                strict=True,
            )
        )
        for group in (listed("fraud-detection"), listed("unknown to the monitor"))
    )
    of_monitor = {
        "lag": "28,800",
        "cause of lag": "",
        "last commit": "2026-11-21 22:26:37",
        "consumed/s": "60",
        "produced/s": "300",
        "catches up in": "the lag does not shrink",
        "leader": "fraud /10.4.7.97",
        "session timeout": "45 s",
        "rebalance timeout": "5 min",
    }
    assert known["coordinator"] == "3"
    assert {name: known[name] for name in of_monitor} == of_monitor
    assert {unknown[name] for name in of_monitor} == {"?"}, "the monitor does not know this group"
    assert {"group", "lag", "cause of lag"} <= {
        str(column.header) for column in group_table([listed("fraud-detection")], None, reported).columns
    }
    assert group_as_json(listed("fraud-detection"), None, reported)["monitor"] == reported["fraud-detection"]


def test_a_group_that_has_no_leader_has_an_empty_cell(pages: Pages) -> None:
    """The command showed `leader ?` for KIP-848 groups and for groups without members, although "?" means unknown."""
    with served(pages) as url:
        known = request_groups(url, CLUSTER)["fraud-detection"]

    def cells_of_members(**changed: Any) -> list[str]:  # noqa: ANN401 - JSON
        return reported_cells({**known, "leader": None, **changed}, verbose=True)[-3:]

    assert cells_of_members() == ["?", "45 s", "5 min"]
    assert cells_of_members(group_type="consumer") == ["", "45 s", "5 min"]
    assert cells_of_members(member_count=0) == ["", "", ""]


def test_without_the_address_of_a_monitor_its_values_are_absent() -> None:
    assert request_reports(Settings(), None, None, is_other_cluster=False) == (None, [])
    settings = Settings(links=LinkSettings(page_url="http://127.0.0.1:1"))
    assert request_reports(settings, None, None, is_other_cluster=True) == (None, []), "it watches a different cluster"


def test_an_unreachable_monitor_is_a_warning_if_its_address_comes_from_the_settings() -> None:
    """The brokers have answered, and during an incident the monitor may be down too."""
    url = f"http://127.0.0.1:{free_port()}"
    reported, (warning,) = request_reports(
        Settings(links=LinkSettings(page_url=url)), None, None, is_other_cluster=False
    )
    assert reported is None
    assert warning.startswith(f"the monitor at {url} does not answer (")
    with pytest.raises(MonitorNotReadableError, match="does not answer"):
        request_reports(Settings(), url, None, is_other_cluster=False)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("other", "returned no groups: no such cluster"),
        (None, "watches several clusters: select one with --cluster"),
    ],
)
def test_a_wrong_request_is_explained(page_scene: Any, cluster: str | None, message: str) -> None:  # noqa: ANN401 - a scene
    views = [cluster_view(name, page_scene.monitor_state, page_scene.tables, NOW_MS) for name in ("eu", "us")]
    with served(Pages(views, STRATEGIES)) as url, pytest.raises(MonitorNotReadableError, match=message):
        request_groups(url, cluster)


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
@pytest.mark.parametrize(
    "body", [b"[]", b"null", b'"text"', b'{"status": "success"}', b'{"groups": [1]}', b"<p>", b"[" * 99_999]
)
def test_the_address_of_a_different_server_is_an_error_with_the_remedy(status: str, body: bytes) -> None:
    """The address of Prometheus or Grafana, or of /metrics instead of the monitor.

    Their JSON ended the command with a traceback. For a page without JSON, the command reported that the monitor does
    not answer.
    """

    def application(_: dict[str, Any], start: Any) -> list[bytes]:  # noqa: ANN401 - the types of WSGI
        start(status, [])
        return [body]

    with (
        served(application) as url,
        pytest.raises(
            MonitorNotReadableError,
            match=r"is not a monitor of this version|returned no groups: status 404|without the JSON of a monitor",
        ),
    ):
        request_groups(url, None)


def test_a_name_and_password_come_from_netrc(home: Path, pages: Pages) -> None:
    """A password on a command line is visible to every user of the machine."""
    seen = []

    def protected(environ: dict[str, Any], start: Any) -> Any:  # noqa: ANN401 - the types of WSGI
        seen.append(environ.get("HTTP_AUTHORIZATION"))
        if seen[-1] != "Basic YWxpY2U6c2VjcmV0":
            start("401 Unauthorized", [])
            return [b""]
        return pages(environ, start)

    with served(protected) as url:
        with pytest.raises(MonitorNotReadableError, match="requires a name and a password: add them to"):
            request_groups(url, CLUSTER)
        netrc = home / ".netrc"
        netrc.write_text("machine 127.0.0.1 login alice password secret\n")
        netrc.chmod(0o600)
        assert "billing" in request_groups(url, CLUSTER)
        netrc.write_text("machine 127.0.0.1 nonsense\n")
        with pytest.raises(MonitorNotReadableError, match="cannot be read"):
            request_groups(url, CLUSTER)
        netrc.unlink()
        netrc.mkdir()
        with pytest.raises(MonitorNotReadableError, match="cannot be read"):
            request_groups(url, CLUSTER)
    assert seen == [None, "Basic YWxpY2U6c2VjcmV0"]
