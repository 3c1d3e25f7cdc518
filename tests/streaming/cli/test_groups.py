"""Test `rebalance-monitor groups`: its table and its JSON for groups of a real cluster."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

import streaming.delta.stored_table
from streaming.cli.groups import _listing_warnings, _read_conditions, groups
from streaming.cli.text.group_output import AnsweredGroup, group_as_json, group_table
from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings, PathSettings
from streaming.delta.rows import condition_rows
from streaming.delta.stored_table import NoTableError, TableReadError
from streaming.delta.tables import GROUP_CONDITIONS
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.errors import RemedyError
from streaming.evaluation.conditions.condition_tracker import Condition, ConditionChange
from streaming.group.listing import CLUSTER_NOT_DESCRIBABLE, DescribedGroup, GroupListing, ListedGroup, ListingGap
from streaming.group.printable import in_ranges
from streaming.sampling.connection import Connection
from streaming.wall_clock import now_ms
from tests.streaming.groups import written
from tests.streaming.past.history import lag_row, write_lag, write_life, write_rows
from tests.streaming.polled.answers import classic, classic_member, modern, modern_member

WAIT_SECONDS = 30.0


def printed_groups(broker: EmbeddedBroker, *options: str) -> list[dict[str, Any]]:
    """Return the groups that the command prints as JSON."""
    result = CliRunner().invoke(groups, ["--bootstrap-server", broker.bootstrap_servers, "--json", *options])
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@contextmanager
def living_groups(broker: EmbeddedBroker, name: str) -> Iterator[None]:
    """Run `<name>-new` (consumer protocol) and `<name>-old` (classic) with one member each; `<name>-idle` has none."""
    with closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connection:
        connection.admin.create_topics([NewTopic(name, 4, 1)])
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=f"{name}-idle")) as committer:
        committer.commit({TopicPartition(name, 0): OffsetAndMetadata(1, "", -1)})
    stop = threading.Event()

    def consume(group_id: str, protocol: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": group_id,
                "group.protocol": protocol,
                "client.id": "app",
            }
        )
        consumer.subscribe([name])
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    consuming = [
        threading.Thread(target=consume, args=(f"{name}-{suffix}", protocol))
        for suffix, protocol in (("new", "consumer"), ("old", "classic"))
    ]
    for thread in consuming:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in consuming:
            thread.join()


@pytest.mark.slow
def test_groups_of_every_protocol_are_listed_with_members_and_partitions(broker: EmbeddedBroker):
    """There is a KIP-848 group, a classic group and a group that only commits."""
    name = f"g{uuid.uuid4().hex[:8]}"
    with living_groups(broker, name):
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(name in group["group_id"] for group in printed_groups(broker, "--state", "stable")) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.3)
        mine = {
            group["group_id"].removeprefix(f"{name}-"): group
            for group in printed_groups(broker)
            if name in group["group_id"]
        }
        assert {suffix: (group["group_type"], group["state"]) for suffix, group in mine.items()} == {
            "idle": ("classic", "Empty"),
            "new": ("consumer", "Stable"),
            "old": ("classic", "Stable"),
        }
        assert [mine[suffix]["protocol"] for suffix in ("idle", "new", "old")] == [None, "uniform", "range"]
        assert [mine[suffix]["protocol_source"] for suffix in ("idle", "new", "old")] == [None, "broker", "broker"]
        assert mine["idle"]["members"] == []
        for suffix in ("new", "old"):
            [member] = mine[suffix]["members"]
            assert member["client_id"] == "app"
            assert member["partitions"] == [{"topic": name, "partition": number} for number in range(4)]
        assert not [group for group in printed_groups(broker, "--type", "share") if name in group["group_id"]]
        shown = CliRunner().invoke(groups, ["--bootstrap-server", broker.bootstrap_servers, "-v"]).output
    assert f"{name}[0-3]" in shown
    assert shown.index(f"{name}-idle") < shown.index(f"{name}-new") < shown.index(f"{name}-old")


def test_a_broker_out_of_reach_is_one_line():
    """The command prints the address without a traceback and ends with code 1."""
    result = CliRunner(env={"REBALANCE_MONITOR_KAFKA__CONNECT_TIMEOUT_SECONDS": "0.3"}).invoke(
        groups, ["--bootstrap-server", address := f"127.0.0.1:{free_port()}"]
    )
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: no broker at {address} answered within 0.3 s")
    assert "check --bootstrap-server, kafka.security.protocol" in result.output, "the wrong address is not a setting"
    assert result.output.count("\n") == 1


def test_an_address_without_a_port_is_refused():
    result = CliRunner().invoke(groups, ["--bootstrap-server", "kafka"])
    assert result.exit_code == 2
    assert "'kafka' is not HOST:PORT" in result.output


def test_an_unknown_state_is_refused():
    """A misspelled state printed an empty table, as if no group had this state."""
    result = CliRunner().invoke(groups, ["--state", "Stabel"])
    assert result.exit_code == 2
    assert "'Stabel' is not one of 'stable', 'empty', " in result.stderr


@pytest.mark.parametrize("address", ["localhost:9560", "http://u:hunter2@localhost", "http://[::1", "http://h:0"])
def test_a_wrong_address_of_the_monitor_is_refused_and_not_shown(address: str):
    """A password in the address was printed and never used. An invalid IPv6 address was a traceback."""
    result = CliRunner().invoke(groups, ["--monitor", address])
    assert result.exit_code == 2
    assert "'--monitor': an address must be http(s)://HOST" in result.stderr
    assert address not in result.stderr


def test_an_empty_address_of_the_monitor_is_refused():
    """The variable MONITOR in a command of the runbook can be empty."""
    assert CliRunner().invoke(groups, ["--monitor", ""]).exit_code == 2


def test_missing_values_are_shown_as_unknown():
    """Rule 2: an old broker lists fewer fields, and some groups may not be described."""
    group = AnsweredGroup("a", ListedGroup(None, "consumer", None, 1), None, "group_authorization_failed")
    assert group_as_json(group, None) == {
        "group_id": "a",
        "group_type": None,
        "state": None,
        "coordinator": 1,
        "protocol_type": "consumer",
        "protocol": None,
        "protocol_source": None,
        "group_epoch": None,
        "assignment_epoch": None,
        "members": None,
        "not_reported": "group_authorization_failed",
        "conditions": None,
        "monitor": None,
    }
    cells = [list(column.cells) for column in group_table([group], None).columns]
    assert cells == [["a"], ["?"], ["?"], ["?"], ["?"], ["?"], ["1"]]


@pytest.mark.parametrize(
    ("described", "message", "why"),
    [
        (classic(classic_member("a", [0, 1]), classic_member("b", [2])), "fair", "three over two"),
        (
            classic(classic_member("a", [0, 1, 2]), classic_member("b", [])),
            "the busiest member has 1 partition too many; 1 member is idle without need",
            "all on one",
        ),
        (
            modern(4, modern_member("a", [0], epoch=4, target=[0]), modern_member("b", [], epoch=3, target=[1])),
            "fair",
            "KIP-848: by the target assignment",
        ),
        (classic(classic_member("a", []), state="PreparingRebalance"), "", "nothing is assigned at the moment"),
        (classic(), "", "no members"),
        (classic(classic_member("a", [0, 2]), classic_member("b", [3])), "?", "partition 1 has no owner"),
        (classic(classic_member("a", [0, 1, 2**31 - 1])), "?", "an absurd partition number"),
    ],
)
def test_the_table_shows_the_fairness_of_a_group(described: DescribedGroup, message: str, why: str):
    """An unavoidable difference is fair. An absurd partition number once ended the command with a MemoryError."""
    group = AnsweredGroup("g", ListedGroup(described.group_type, "consumer", described.state, 1), described, None)
    assert list(group_table([group], None).columns[5].cells) == [message], why


def conditions_in(folder: Path, *names: str, cluster: str = "default", measured_ms: int | None = None) -> None:
    """Write the tables of a cluster, with active conditions of group `a` and a measurement, as the monitor does."""
    changes = [
        ConditionChange("a", Condition(name, 60_000, "pod-3"), active=True, read_up_to_ms=60_000) for name in names
    ]
    write_life(folder, [written(10, 1)], "a", cluster)
    write_rows(folder, {GROUP_CONDITIONS: condition_rows(cluster, 60_000, changes)})
    write_lag(folder, lag_row(now_ms() if measured_ms is None else measured_ms, 7, cluster=cluster))


def test_the_table_shows_the_conditions_of_a_group(tmp_path: Path):
    """Only conditions of the configured cluster are shown, not those of a group with the same name elsewhere."""
    conditions_in(tmp_path, "flapping_member", "rebalance_storm")
    conditions_in(tmp_path, "silent_group", cluster="other")
    conditions, warnings = _read_conditions(Settings(), str(tmp_path), None, is_other_cluster=False)
    assert not warnings
    fine, restless = (AnsweredGroup(name, ListedGroup("classic", "", "Stable", 1), None, "no_answer") for name in "ba")
    table = group_table([fine, restless], conditions)
    assert [list(column.cells) for column in table.columns if column.header == "conditions"] == [
        ["", "flapping member since 1970-01-01 00:01:00\nrebalance storm since 1970-01-01 00:01:00"]
    ]
    assert group_as_json(fine, conditions)["conditions"] == []
    assert group_as_json(restless, conditions)["conditions"][0] == {
        "condition": "flapping_member",
        "since": "1970-01-01T00:01:00+00:00",
        "detail": "pod-3",
    }


PROD = Settings(kafka=KafkaSettings(cluster="prod"))


@pytest.mark.parametrize(
    ("stored", "settings", "cluster", "is_other_cluster", "expected"),
    [
        (["demo"], Settings(), None, True, "storm of demo"),
        (["demo"], Settings(), "demo", True, "storm of demo"),
        (["demo", "eu"], Settings(), "demo", True, "storm of demo"),
        (["demo"], Settings(), "prod", True, "contain no cluster 'prod', only demo"),
        (["demo", "eu"], Settings(), None, True, "contain several clusters: set --cluster to one of demo, eu"),
        (["demo"], Settings(), None, False, "contain no cluster 'default', only demo"),
        (["demo", "prod"], PROD, "prod", False, "storm of prod"),
    ],
)
def test_the_conditions_are_those_of_the_cluster_or_an_error(  # noqa: PLR0913, PLR0917 - the columns of the cases
    tmp_path: Path, stored: list[str], settings: Settings, cluster: str | None, is_other_cluster: bool, expected: str
):
    """The command searched the tables for the cluster `default`, and showed that a flapping group has no condition."""
    for name in stored:
        conditions_in(tmp_path, f"storm of {name}", cluster=name)

    def read() -> str:
        try:
            found, _ = _read_conditions(settings, str(tmp_path), cluster, is_other_cluster=is_other_cluster)
        except RemedyError as error:
            return str(error).partition(str(tmp_path))[2].strip()
        return ", ".join(row["condition"] for row in (found or {})["a"])

    assert read() == expected


def test_conditions_are_unknown_if_the_configured_tables_do_not_contain_the_cluster(tmp_path: Path):
    """An empty list would look like a group without conditions."""
    conditions_in(tmp_path, "storm", cluster="demo")
    settings = Settings(paths=PathSettings(tables=str(tmp_path)))
    assert _read_conditions(settings, None, None, is_other_cluster=False) == (None, [])


def test_the_conditions_of_a_stopped_monitor_are_unknown(tmp_path: Path):
    """The monitor was killed while a group was silent. Days later, the command still showed a silent group."""
    conditions_in(tmp_path, "silent_group", measured_ms=1_795_785_675_000)
    conditions, (warning,) = _read_conditions(Settings(), str(tmp_path), None, is_other_cluster=False)
    assert conditions is None
    assert warning == (
        "the active conditions are unknown, because the last measurement in the tables is from 2026-11-27 13:21:15 UTC:"
        " check that the monitor runs. `rebalance-monitor history GROUP` shows the last known conditions"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "demo", "--tables", "T"), "no broker at"),
        (("--cluster", "demo", "--monitor", "http://localhost:1"), "no broker at"),
        (("--cluster", "demo"), "no cluster 'demo' is configured"),
    ],
)
def test_a_cluster_of_the_tables_or_the_monitor_needs_no_settings(options: tuple[str, ...], message: str):
    """Each name except `default` was an error, so the cluster in the tables could not be selected."""
    arguments = ["--bootstrap-server", f"127.0.0.1:{free_port()}", *options]
    result = CliRunner(env={"REBALANCE_MONITOR_KAFKA__CONNECT_TIMEOUT_SECONDS": "0.1"}).invoke(groups, arguments)
    assert (result.exit_code, message in result.output) == (1, True)


def test_the_groups_are_listed_even_if_the_tables_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A user may have access to the brokers but not to the object store."""

    def refuse(*_: object) -> None:
        raise OSError("Generic S3 error\nError performing GET")

    monkeypatch.setattr(streaming.delta.stored_table, "DeltaTable", refuse)
    assert _read_conditions(Settings(), None, None, is_other_cluster=False) == (None, [])
    with pytest.raises(
        TableReadError, match=r"cannot be read \(Generic S3 error\): check that the storage is reachable"
    ):
        _read_conditions(Settings(), str(tmp_path), None, is_other_cluster=False)


def test_without_tables_of_the_requested_cluster_no_conditions_are_shown(tmp_path: Path):
    """The configured tables belong to the configured cluster. A given folder without tables is an error."""
    assert _read_conditions(Settings(), None, None, is_other_cluster=True) == (None, [])
    with pytest.raises(NoTableError):
        _read_conditions(Settings(), str(tmp_path), None, is_other_cluster=False)


def test_control_characters_in_a_name_are_escaped():
    """Rule 4: every client can choose a name."""
    group = AnsweredGroup("\x1b[2Jred", ListedGroup("classic", "", "Empty", 1), None, "no_answer")
    [name] = group_table([group], None).columns[0].cells
    assert name == "\\x1b[2Jred"


def test_missing_permissions_and_brokers_are_named_with_the_remedy():
    """Otherwise an incomplete list looks complete."""
    gaps = (ListingGap(None, CLUSTER_NOT_DESCRIBABLE), ListingGap(2, "coordinator_load_in_progress"))
    assert list(_listing_warnings(GroupListing(0, {}, gaps))) == [
        "you have no DESCRIBE permission on the cluster, so the list contains only groups that you can describe",
        "groups of broker 2 are missing: coordinator_load_in_progress",
    ]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((0, 1), "0-1"), ((0, 1, 2, 5, 7, 8), "0-2,5,7-8")],
)
def test_partitions_are_written_as_ranges(numbers: tuple[int, ...], text: str):
    assert in_ranges(numbers) == text
