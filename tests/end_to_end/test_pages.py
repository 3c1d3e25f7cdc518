"""The pages of a running monitor: a real group of a hostile name, over TLS, for who has a password."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import bcrypt
import pytest
import trustme

from streaming.embedded import EmbeddedBroker
from streaming.page.addresses import GROUP_API, group_address
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

AUTHORIZATION = {"Authorization": "Basic " + base64.b64encode(b"ops:secret").decode()}


class Site:
    """The port of a monitor, asked as a browser asks that trusts its authority."""

    def __init__(self, monitor: MonitorProcess, authority: trustme.CA) -> None:
        self._address = f"https://127.0.0.1:{monitor.port}"
        self._context = ssl.create_default_context()
        authority.configure_trust(self._context)

    def ask(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the body; 0 where nobody answers."""
        request = Request(self._address + path, headers=headers)  # noqa: S310 - https, to loopback
        try:
            with urlopen(request, timeout=30, context=self._context) as answer:  # noqa: S310 - as above
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except URLError:
            return 0, ""

    def group(self, group_id: str) -> dict[str, Any]:
        """One group's JSON."""
        found: dict[str, Any] = json.loads(self.ask(group_address(group_id, GROUP_API), **AUTHORIZATION)[1])
        return found


@pytest.fixture
def guarded(folder: Path) -> tuple[trustme.CA, dict[str, str]]:
    """A certificate's authority, and the settings that guard the port."""
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = {name: folder / name for name in ("cert.pem", "key.pem", "users")}
    files["cert.pem"].write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    files["key.pem"].write_bytes(issued.private_key_pem.bytes())
    files["users"].write_bytes(b"ops:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)))
    for file in files.values():
        file.chmod(0o600)
    return authority, {
        "METRICS__TLS_CERTIFICATE_FILE": str(files["cert.pem"]),
        "METRICS__TLS_KEY_FILE": str(files["key.pem"]),
        "METRICS__BASIC_AUTH_USERS_FILE": str(files["users"]),
    }


def test_a_group_of_any_name_is_shown_with_its_members_lag_and_story(
    broker: EmbeddedBroker, folder: Path, name: str, guarded: tuple[trustme.CA, dict[str, str]]
):
    """The whole way from `__consumer_offsets` to the page."""
    authority, settings = guarded
    group_id = f"{name}/../<script>alert('ü')</script>"
    create_topics(broker, {f"{name}-a": 3, f"{name}-b": 3})
    group = Group(broker.bootstrap_servers, group_id)
    monitor = MonitorProcess(broker.bootstrap_servers, folder, settings).start()
    site = Site(monitor, authority)
    try:
        group.join([f"{name}-a", f"{name}-b"])
        until("ready", lambda: site.ask("/-/ready")[0] == 200, 180)
        until("one member", lambda: site.group(group_id).get("members") == 1)
        group.join([f"{name}-a", f"{name}-b"])
        until("two members", lambda: site.group(group_id).get("members") == 2)
        until("everything committed", lambda: site.group(group_id)["lag"] == 0)
        until("its story", lambda: [one["kind"] for one in site.group(group_id)["rebalances"]][:1] == ["rebalance"])
        found = site.group(group_id)
        assert sorted(len(member["target"]) for member in found["members_in_full"]) == [2, 4], (
            "range, two topics of three"
        )
        assert (found["verdict"], found["drift_partitions"]) == ("match", 0)
        assert {(one["topic"], one["lag"]) for one in found["partitions"]} == {(f"{name}-a", 0), (f"{name}-b", 0)}
        assert found["what_if"][0]["alternatives"][0]["moved_partitions"] == 0
        status, page = site.ask(group_address(group_id), **AUTHORIZATION)
        assert (status, "<script" in page) == (200, False)
        assert group_address(group_id) in site.ask("/", **AUTHORIZATION)[1]
        assert [site.ask(path)[0] for path in ("/", "/metrics", group_address(group_id))] == [401] * 3
        assert "rebalance_monitor_ready" in site.ask("/metrics", **AUTHORIZATION)[1]
    finally:
        group.leave_all()
        monitor.stop()
