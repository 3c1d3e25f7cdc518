"""Tests of the facts about a group that an engineer on call asks for: commits, rates, owners, leader and timeouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.page.application import Pages
from tests.streaming.page.scene import scene
from tests.streaming.page.test_application import Seen, ask, pages_of


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    tables: Path = tmp_path_factory.mktemp("tables")
    return pages_of(scene(tables).monitor_state, tables)


def test_a_group_page_shows_what_an_engineer_asks_during_an_incident(pages: Pages) -> None:
    """The runbook asks for the last commit, the rates, the owner of a late partition, the leader and the timeouts."""
    text = Seen(ask(pages, "/groups/fraud-detection").text).text
    for words in (
        " last commit 2026-11-21 22:26:37 consumed 60/s produced 300/s catches up in the lag does not shrink ",
        " worst partition orders -0 of fraud /10.4.7.97 ",
        " leader fraud /10.4.7.97 session timeout 45 s rebalance timeout 5 min ",
    ):
        assert words in text, words
    assert " orders -0 fraud /10.4.7.97 960 " in text, "the owner of each partition has its client id and host"
    assert " 2026-11-21 22:26:37 2/s 10/s 5,240 " in text, "each partition has its last commit and both rates"


def test_the_owner_of_a_partition_is_a_client_that_a_user_can_find(pages: Pages) -> None:
    (first, *_) = ask(pages, "/api/v1/groups/ledger").json()["partitions"]
    owner = {name: first[name] for name in ("owner", "owner_client_id", "owner_client_host", "owner_group_instance_id")}
    assert owner == {
        "owner": owner["owner_group_instance_id"],
        "owner_client_id": "ledger",
        "owner_client_host": f"/10.4.8.{ord(owner['owner'][-1])}",
        "owner_group_instance_id": owner["owner"],
    }
