"""A cluster that lets nobody in unasked: TLS, SASL and access rules on a real broker, for both of our Kafka clients.

What is asked: the least rights are enough; what is refused is one clear line; no secret is to be found anywhere.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from kafka.admin import ACLOperation, NewTopic, ResourceType
from kafka.errors import KafkaError
from pyspark.sql import SparkSession

from streaming.combine.commits import COMMIT_SCHEMA
from streaming.config.security import SecuritySettings, read_secrets
from streaming.config.settings import KafkaSettings, SparkSettings
from streaming.embedded.ports import free_port
from streaming.errors import RemedyError
from streaming.evaluation.lag.lag import MAYBE_ONLY_MARKERS
from streaming.evaluation.rebalances.detectors import Limits
from streaming.events import OFFSETS_TOPIC
from streaming.jars import resolve
from streaming.java import find_java, java_version
from streaming.run.cluster_clock import ClusterClock
from streaming.run.samples.lag_watch import LagWatch
from streaming.sampling.brokers import Brokers
from streaming.sampling.connection import AccessRefusedError, Connection
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.spark.session import spark_session
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_view import MonitorView
from tests.end_to_end.conftest import OFFSETS_TOPIC_PARTITIONS, Group, create_topics
from tests.end_to_end.members import Joining, Member, librdkafka
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.relay import last_words_with_the_end
from tests.end_to_end.secure_broker import (
    ADMIN_API_RIGHTS,
    CLIENT_SECRET,
    LEAST_RIGHTS,
    PASSWORD,
    SecureBroker,
    secure_broker,
)
from tests.streaming.log_records import commit_key
from tests.streaming.run.test_poller import Folder
from tests.streaming.security.pem import KEY_PASSWORD, USER

pytestmark = pytest.mark.slow

CONNECT_TIMEOUT_SECONDS = 10.0
"""Until Python has imported Spark, on a busy machine."""

TLS = {"protocol": "SASL_SSL", "ca_file": "ca.pem"}
SCRAM = {**TLS, "mechanism": "SCRAM-SHA-512", "username": USER, "password_file": "password"}
BY_PASSWORD = {**TLS, "username": USER, "password": PASSWORD}
OAUTH = {**TLS, "mechanism": "OAUTHBEARER", "oauth_client_id": USER, "oauth_client_secret": CLIENT_SECRET}
MUTUAL = {"protocol": "SSL", "ca_file": "ca.pem", "certificate_file": "client.pem", "key_file": "client.key"}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """The broker; its one user has the least rights, and a group has committed."""
    with secure_broker(tmp_path_factory.mktemp("secure") / "files") as running:
        running.grant(LEAST_RIGHTS)
        running.add_user("stranger", PASSWORD)
        create_topics(running.broker, {"orders": 3})
        group = Group(running.broker.bootstrap_servers, "shipping")
        group.join(["orders"])
        until("commits", lambda: _committed(running))
        group.leave_all()
        yield running


def _committed(secure: SecureBroker) -> bool:
    with secure.admin() as admin, suppress(KafkaError):  # until the group's coordinator is there
        return sum(commit.offset for commit in admin.list_group_offsets(["shipping"])["shipping"].values()) == 30
    return False


def monitor(secure: SecureBroker, folder: Path, given: Mapping[str, str], **more: str) -> MonitorProcess:
    """A monitor with these settings of `kafka.security`; what is a file's name is one of the broker's folder."""
    environment = {
        f"KAFKA__SECURITY__{name.upper()}": str(secure.folder / value) if name.endswith("_file") else value
        for name, value in given.items()
    }
    timeout = {"KAFKA__CONNECT_TIMEOUT_SECONDS": f"{CONNECT_TIMEOUT_SECONDS:g}"}
    return MonitorProcess(secure.broker.address("SECURE"), folder, environment={**environment, **timeout, **more})


def test_the_least_rights_are_enough_and_no_secret_is_to_be_found(secure: SecureBroker, tmp_path: Path) -> None:
    """The password is looked for where it would hurt: processes, log, Spark's pages, metrics, tables, checkpoint.

    And where it could show: a log at DEBUG that tells what Kafka's client was given, a page with the query's plan.
    """
    ui_port = free_port()
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": f"{ui_port}",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.debug.maxToStringFields": "999",
        "spark.hadoop.fs.azure.account.key.mine": "hedge of an account",
        "spark.hadoop.fs.azure.sas.container.mine": "sv=1&sig=hedge",
    }
    spark = {"SPARK__LOG_LEVEL": "DEBUG", "SPARK__CONF": json.dumps(conf)}
    by_variable = {name: value for name, value in SCRAM.items() if name != "password_file"} | {"password": PASSWORD}
    watching = monitor(secure, tmp_path / "monitor", by_variable, **spark)
    try:
        watching.start().wait_until_ready()
        until("the lag", lambda: watching.value("rebalance_monitor_group_lag", group="shipping") == 0)
        assert watching.value("rebalance_monitor_query_restarts_total") in {0, None}
        pages = _pages(ui_port)
        shown = [_of_processes(watching), *pages.values(), watching.log.read_text(), watching.ask("/metrics")[1]]
    finally:
        assert watching.stop() == 0
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for secret in ("hedge", "password="):
        assert [page[:200] for page in shown if secret in page] == []
    assert not any(b"hedge" in content for content in files)
    log = watching.log.read_text()
    for said in (
        " INFO Spark: Running Spark version",
        " DEBUG Spark: [Consumer clientId=",
        " INFO Spark: ConsumerConfig values",
        "sasl.jaas.config = [hidden]",
    ):
        assert said in log
    plans = [page for path, page in pages.items() if "/SQL/execution/" in path]
    assert any("MicroBatchScan" in plan and "KafkaSourceProvider" in plan for plan in plans)
    assert "spark.sql.ui.explainMode" in pages["/environment/"]


def test_a_group_that_read_all_of_a_transaction_is_not_late_and_without_read_its_lag_is_unknown(
    secure: SecureBroker, tmp_path: Path
) -> None:
    """Defect 2: a commit directly before a transaction's marker was a lag of 1 for ever."""
    topic, transactions = "payments", 3
    secure.add_user("looker", PASSWORD)
    secure.grant(LEAST_RIGHTS, "looker")
    with secure.admin() as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
    producer = Producer({"bootstrap.servers": secure.broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    for _ in range(transactions):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(topic, b"x" * 9_000, partition=partition)
        producer.commit_transaction()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=1)
    producer.flush()

    now_ms, committed_offsets = 0, CommittedOffsets()
    with closing(
        connected(secure.broker.address("SECURE"), settings(secure, {**SCRAM, "username": "looker"}))
    ) as connection:
        brokers = Brokers("secure", connection, lambda: now_ms)
        watch = LagWatch(
            "secure", committed_offsets, Folder(tmp_path), Limits(), brokers, ClusterClock("secure", lambda: now_ms)
        )

        def lags(*committed: int, seconds: int = 40) -> list[tuple[int | None, str | None, bool]]:
            nonlocal now_ms
            now_ms += 1000 * seconds
            committed_offsets.apply(_commits(topic, committed, now_ms))
            evaluated = watch.evaluate_snapshot(committed_offsets.view(), MonitorView(), brokers.sample([topic]))
            columns = (evaluated.partitions[name].to_pylist() for name in ("lag", "unknown_reason", "is_blocked"))
            return list(zip(*columns, strict=True))

        unknown, read_all, blocked = (None, MAYBE_ONLY_MARKERS, False), (0, None, False), (1, None, True)
        before_marker, at_open = 2 * transactions - 1, 2 * transactions
        assert lags(before_marker, at_open)[0] == (1, None, False)
        assert lags(before_marker, at_open) == [unknown, blocked], "DESCRIBE is enough to see an open transaction"
        secure.grant([(ResourceType.TOPIC, topic, ACLOperation.READ)], "looker")
        until("READ", lambda: lags(before_marker, at_open, seconds=400) == [read_all, blocked])
        lags(before_marker - 1, before_marker)
        assert lags(before_marker - 1, before_marker) == [(2, None, False), blocked]
        producer.abort_transaction()
        assert lags(before_marker - 1, before_marker) == [(2, None, False), unknown], "to some consumers it is a record"


def _commits(topic: str, committed: Sequence[int], now_ms: int) -> pa.Table:
    """Commits of one group on the topic's partitions."""
    rows = [(0, commit_key("late", topic, at), now_ms, now_ms, offset) for at, offset in enumerate(committed)]
    names = ("offsets_topic_partition", "key", "offsets_topic_offset", "timestamp_ms", "committed_offset")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=COMMIT_SCHEMA)


def test_where_the_log_may_not_be_read_run_names_the_other_source_and_that_one_needs_no_right_on_it(
    secure: SecureBroker, tmp_path: Path
) -> None:
    """Managed clusters keep `__consumer_offsets` to themselves: first READ is missing here, then DESCRIBE, too.

    DESCRIBE on other topics, groups and cluster shows members, commits and lag.
    """
    secure.add_user("latency_probe", PASSWORD)
    secure.grant(ADMIN_API_RIGHTS, "latency_probe")
    latency_probe = {**SCRAM, "username": "latency_probe"}
    hint = 'set source.kind = "admin-api"'
    by_log = monitor(secure, tmp_path / "by-log", latency_probe)
    refused = by_log.refused_command("run")
    assert "the monitor has no right to read __consumer_offsets" in refused
    assert hint in refused
    secure.deny((ResourceType.TOPIC, OFFSETS_TOPIC, ACLOperation.DESCRIBE), "latency_probe")
    assert hint in by_log.refused_command("run")
    group = Group(secure.broker.bootstrap_servers, "packing")
    group.join(["orders"])
    joining = Joining("picking", "picking-client", ["orders"])
    member = Member(librdkafka(secure.broker.bootstrap_servers, group_protocol="consumer"), joining)
    asking = monitor(secure, tmp_path / "by-asking", latency_probe, SOURCE__KIND="admin-api")
    try:
        asking.start().wait_until_ready()
        for group_id, state, members in (("packing", "Stable", 1), ("picking", "Stable", 1), ("shipping", "Empty", 0)):
            of_group = {"group": group_id}
            until("members", partial(_is, members, asking, "rebalance_monitor_group_members", of_group))
            until("the state", lambda: asking.by_state(group_id) == state)  # noqa: B023 - asked within its turn
            until("the lag", partial(_is, 0, asking, "rebalance_monitor_group_lag", of_group))
        of_modern = {"group_type": "consumer", "protocol": "uniform", "group": "picking"}
        assert asking.value("rebalance_monitor_group_state", **of_modern) == 1
        assert asking.value("rebalance_monitor_group_generation", group="picking"), "KIP-848's epochs are told"
        of_strategy = {"group": "picking", "strategy": "uniform"}
        until("drift", partial(_is, 0, asking, "rebalance_monitor_drift_partitions", of_strategy))
        assert asking.stop() == 0
    finally:
        member.leave()
        group.leave_all()


def _is(wanted: float, watching: MonitorProcess, metric: str, labels: Mapping[str, str]) -> bool:
    return watching.value(metric, **labels) == wanted


def _of_processes(watching: MonitorProcess) -> str:
    """The command lines of all its processes, and the environment of those that it started."""
    assert watching.process is not None
    mine = psutil.Process(watching.process.pid)
    children = mine.children(recursive=True)
    assert any("java" in child.name() for child in children)
    reported = [str(mine.cmdline())]
    for child in children:
        with suppress(psutil.NoSuchProcess):  # workers come and go
            reported.append(f"{child.cmdline()} {child.environ()}")
    return " ".join(reported)


def _pages(ui_port: int) -> Mapping[str, str]:
    """Spark's web page by path, as far as it tells of settings, the query, and every plan it has run."""
    [application] = json.loads(_page(ui_port, "/api/v1/applications"))
    run = json.loads(_page(ui_port, f"/api/v1/applications/{application['id']}/sql?details=false&length=1000"))
    assert run
    paths = ["/SQL/", "/environment/", "/StreamingQuery/", "/jobs/", "/executors/"]
    plans = [f"/SQL/execution/?id={execution['id']}" for execution in run]
    return {path: _page(ui_port, path) for path in [*paths, *plans]}


def _page(ui_port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{ui_port}{path}", timeout=30) as response:
        text: str = response.read().decode()
    return text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {**SCRAM, "password_file": "wrong-password"},
            "user 'monitor' with SCRAM-SHA-512: check kafka.security.username, password and m",
        ),
        (
            {**SCRAM, "ca_file": "another-ca.pem"},
            "): check kafka.security.ca_file",
        ),
        (
            {**SCRAM, "username": "stranger"},
            "the monitor has no right to read __consumer_offsets: grant READ and DESCRIBE on it, or set",
        ),
    ],
    ids=["wrong password", "unknown authority", "missing right"],
)
def test_a_refused_start_is_one_line_and_an_exit_code(
    secure: SecureBroker, tmp_path: Path, given: Mapping[str, str], said: str
) -> None:
    """Whoever mistyped a password sits and waits."""
    refused = monitor(secure, tmp_path / "monitor", given).refused_command("run")
    assert said in refused
    assert refused.startswith("Error: ")
    assert len(refused.splitlines()) == 1


def settings(secure: SecureBroker, given: Mapping[str, str]) -> SecuritySettings:
    """Settings with the broker's files."""
    at_home = {name: secure.folder / value if name.endswith("_file") else value for name, value in given.items()}
    return SecuritySettings.model_validate(at_home)


def oauth(secure: SecureBroker, **more: str) -> dict[str, str]:
    """Settings for OAUTHBEARER at the test's own endpoint, which speaks TLS."""
    return {**OAUTH, "oauth_token_endpoint": secure.token_endpoint, "oauth_ca_file": "ca.pem", **more}


def connected(bootstrap_servers: str, security: SecuritySettings, connect_timeout_seconds: float = 10) -> Connection:
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap_servers, connect_timeout_seconds=connect_timeout_seconds, security=security
    )
    return Connection(kafka, 10)


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with spark_session(SparkSettings(), resolve("spark"), find_java().parent.parent) as started:
        yield started


def test_every_way_in_is_open_to_both_clients_by_the_same_settings(secure: SecureBroker, session: SparkSession) -> None:
    """kafka-python lists brokers, Spark's source reads the topic; the broker checks password, token and certificate."""
    ways = {
        "PLAIN": ("SECURE", {**BY_PASSWORD, "mechanism": "PLAIN"}),
        "SCRAM-SHA-256": ("SECURE", {**BY_PASSWORD, "mechanism": "SCRAM-SHA-256"}),
        "SCRAM-SHA-512": ("SECURE", SCRAM),
        "OAUTHBEARER": ("SECURE", oauth(secure, oauth_scope="read")),
        "mTLS": ("MUTUAL", MUTUAL),
        "mTLS, the key under a password": (
            "MUTUAL",
            {**MUTUAL, "key_file": _locked(secure), "key_password": KEY_PASSWORD},
        ),
    }
    seen = {}
    for way, (listener, given) in ways.items():
        address, security = secure.broker.address(listener), settings(secure, given)
        check_key(security, lambda: java_version(find_java()))
        with closing(connected(address, security)) as connection:
            assert connection.broker_ids() == [1], way
        seen[way] = _records(session, address, security)
    assert seen == dict.fromkeys(ways, seen["SCRAM-SHA-512"])
    assert seen["SCRAM-SHA-512"] > 0


def _locked(secure: SecureBroker) -> str:
    """A key as our refusal of the usual ones tells users to make it for Java 17; its file's name."""
    key, locked = secure.folder / "client.key", secure.folder / "old-locked.key"
    words = ["openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", str(key), "-out", str(locked)]
    subprocess.run([*words, "-passout", f"pass:{KEY_PASSWORD}"], check=True, capture_output=True)
    return locked.name


def _records(session: SparkSession, bootstrap_servers: str, security: SecuritySettings) -> int:
    with secrets_file(java_secrets(security, read_secrets(security))) as file:
        options = {
            "kafka.bootstrap.servers": bootstrap_servers,
            "assign": json.dumps({OFFSETS_TOPIC: list(range(OFFSETS_TOPIC_PARTITIONS))}),
            **spark_options(security, file),
        }
        return session.read.format("kafka").options(**options).load().count()


def test_what_the_broker_refuses_says_what_to_check(secure: SecureBroker) -> None:
    """Each of these once looked like a broker that is not there, when the ten minutes given here were over."""
    at = secure.broker.address("SECURE")
    unknown_endpoint = {name: value for name, value in oauth(secure).items() if name != "oauth_ca_file"}
    refusals = [
        (
            at,
            oauth(secure, oauth_client_secret=PASSWORD),
            "returned HTTP status 401: check kafka.security.oauth_client_id",
        ),
        (at, unknown_endpoint, "did not answer .*certificate verify failed.*oauth_ca_file"),
        (at.replace("127.0.0.1", "localhost"), SCRAM, "[Hh]ostname mismatch.*check kafka.bootstrap_servers"),
    ]
    for address, given, said in refusals:
        with pytest.raises(RemedyError, match=f"^no access to {address}: .*{said}"):
            connected(address, settings(secure, given), connect_timeout_seconds=600)


def test_a_refusal_is_heard_though_the_broker_hangs_up_in_the_same_breath(secure: SecureBroker) -> None:
    """kafka-python reads words and end at once and drops the words: the line came when the connect timeout was up."""
    with last_words_with_the_end(secure.broker.address("SECURE")) as address:
        wrong = settings(secure, {**BY_PASSWORD, "mechanism": "SCRAM-SHA-256", "password": "wrong"})
        with pytest.raises(AccessRefusedError, match=f"^no access to {address}: the broker rejects user 'monitor'"):
            connected(address, wrong, connect_timeout_seconds=60)


def test_a_port_that_hangs_up_says_what_it_may_want(secure: SecureBroker) -> None:
    """A plain port that is spoken to in TLS, and one that wants a certificate: neither says so before it hangs up."""
    tls_alone = {"protocol": "SSL", "ca_file": "ca.pem"}
    for address in (secure.broker.bootstrap_servers, secure.broker.address("MUTUAL")):
        with pytest.raises(RemedyError, match=r"check kafka\.security\.(protocol and )?certificate_file"):
            connected(address, settings(secure, tls_alone), connect_timeout_seconds=3)
