"""Test TLS, SASL and ACLs on a real broker, with both Kafka clients of the monitor.

1. The minimal permissions are enough.
2. A refused connection is one line that names the setting to check.
3. No secret appears in any output.
"""

from __future__ import annotations

import json
import re
import shlex
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
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import OFFSETS_TOPIC
from streaming.java import find_java, java_version
from streaming.run.cluster_clock import ClusterClock
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.run.samples.lag.retention_settings import RetentionSettings
from streaming.sampling.brokers import Brokers
from streaming.sampling.configs import Configs, TopicSettings
from streaming.sampling.connection import AccessRefusedError, Connection
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.spark.session import spark_session
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_view import MonitorView
from tests.conftest import SPARK_CONF
from tests.end_to_end.conftest import OFFSETS_TOPIC_PARTITIONS, Group, create_topics
from tests.end_to_end.members import Joining, Member, librdkafka
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.relay import last_answer_with_close
from tests.end_to_end.secure_broker import (
    ADMIN_API_PERMISSIONS,
    CLIENT_SECRET,
    LEAST_PERMISSIONS,
    PASSWORD,
    SecureBroker,
    secure_broker,
)
from tests.streaming.log_records import commit_key
from tests.streaming.run.test_poller import Folder
from tests.streaming.security.pem import KEY_PASSWORD, USER

pytestmark = pytest.mark.slow

CONNECT_TIMEOUT_SECONDS = 10.0
"""Longer than Python needs to import Spark on a busy machine."""

TLS = {"protocol": "SASL_SSL", "ca_file": "ca.pem"}
SCRAM = {**TLS, "mechanism": "SCRAM-SHA-512", "username": USER, "password_file": "password"}
BY_PASSWORD = {**TLS, "username": USER, "password": PASSWORD}
OAUTH = {**TLS, "mechanism": "OAUTHBEARER", "oauth_client_id": USER, "oauth_client_secret": CLIENT_SECRET}
MUTUAL = {"protocol": "SSL", "ca_file": "ca.pem", "certificate_file": "client.pem", "key_file": "client.key"}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Run the broker. Its user has the minimal permissions, and one group has committed."""
    with secure_broker(tmp_path_factory.mktemp("secure") / "files") as running:
        running.grant(LEAST_PERMISSIONS)
        running.add_user("stranger", PASSWORD)
        create_topics(running.broker, {"orders": 3})
        group = Group(running.broker.bootstrap_servers, "shipping")
        group.join(["orders"])
        until("commits", lambda: _committed(running))
        group.leave_all()
        yield running


def _committed(secure: SecureBroker) -> bool:
    with secure.admin() as admin, suppress(KafkaError):  # until the group's coordinator is available
        return sum(commit.offset for commit in admin.list_group_offsets(["shipping"])["shipping"].values()) == 30
    return False


def monitor(secure: SecureBroker, folder: Path, given: Mapping[str, str], **more: str) -> MonitorProcess:
    """Return a monitor with these settings of `kafka.security`. Files are in the broker's folder."""
    environment = {
        f"KAFKA__SECURITY__{name.upper()}": str(secure.folder / value) if name.endswith("_file") else value
        for name, value in given.items()
    }
    timeout = {"KAFKA__CONNECT_TIMEOUT_SECONDS": f"{CONNECT_TIMEOUT_SECONDS:g}"}
    return MonitorProcess(secure.broker.address("SECURE"), folder, environment={**environment, **timeout, **more})


def test_the_minimal_permissions_are_enough_and_no_output_has_a_secret(secure: SecureBroker, tmp_path: Path) -> None:
    """Search the password in processes, log, Spark's pages, metrics, tables and checkpoint.

    The log has level DEBUG with the settings of Kafka's client, and Spark's pages show the query's plan.
    """
    ui_port = free_port()
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": f"{ui_port}",
        "spark.sql.ui.explainMode": "extended",
        "spark.sql.debug.maxToStringFields": "999",
        **SPARK_CONF,
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
        pages = _spark_pages(ui_port)
        processes = _command_lines_and_environments(watching)
        shown = [processes, *pages.values(), watching.log.read_text(), watching.ask("/metrics")[1]]
    finally:
        assert watching.stop() == 0
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for secret in ("hedge", "password="):
        assert [page[:200] for page in shown if secret in page] == []
    assert not any(b"hedge" in content for content in files)
    log = watching.log.read_text()
    optional = (
        "READ on all topics (optional), DESCRIBE_CONFIGS on the cluster (optional), DESCRIBE_CONFIGS on all topics"
    )
    for line in (
        f" INFO default: missing permissions: {optional} (optional)",
        f" INFO default: open http://127.0.0.1:{watching.port}/?cluster=default to see the groups. Next steps: ",
        " INFO Spark: Running Spark version",
        " DEBUG Spark: [Consumer clientId=",
        " INFO Spark: ConsumerConfig values",
        "sasl.jaas.config = [hidden]",
    ):
        assert line in log
    plans = [page for path, page in pages.items() if "/SQL/execution/" in path]
    assert any("MicroBatchScan" in plan and "KafkaSourceProvider" in plan for plan in plans)
    assert "spark.sql.ui.explainMode" in pages["/environment/"]


def test_a_group_that_read_a_whole_transaction_has_no_lag_and_without_read_permission_its_lag_is_unknown(
    secure: SecureBroker, tmp_path: Path
) -> None:
    """A commit directly before a transaction's marker once was a lag of 1 forever."""
    topic, transactions = "payments", 3
    secure.add_user("reader", PASSWORD)
    secure.grant(LEAST_PERMISSIONS, "reader")
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
        connected(secure.broker.address("SECURE"), settings(secure, {**SCRAM, "username": "reader"}))
    ) as connection:
        brokers = Brokers("secure", connection, lambda: now_ms)
        clock = ClusterClock("secure", lambda: now_ms, lambda: 0)
        retention = RetentionSettings("secure", Configs(connection))
        watch = LagWatch("secure", committed_offsets, Folder(tmp_path), Limits(), brokers, clock, retention)

        def lags(*committed: int, seconds: int = 40) -> list[tuple[int | None, str | None, bool]]:
            nonlocal now_ms
            now_ms += 1000 * seconds
            committed_offsets.apply(_commits(topic, committed, now_ms))
            evaluated = watch.evaluate(committed_offsets.view(), MonitorView(), brokers.sample([topic]))
            columns = (evaluated.partitions[name].to_pylist() for name in ("lag", "unknown_reason", "is_blocked"))
            return list(zip(*columns, strict=True))

        unknown, read_all, blocked = (None, MAYBE_ONLY_MARKERS, False), (0, None, False), (1, None, True)
        before_marker, at_open = 2 * transactions - 1, 2 * transactions
        assert lags(before_marker, at_open)[0] == (1, None, False)
        assert lags(before_marker, at_open) == [unknown, blocked], "DESCRIBE is enough to see an open transaction"
        secure.grant([(ResourceType.TOPIC, topic, ACLOperation.READ)], "reader")
        until("READ", lambda: lags(before_marker, at_open, seconds=400) == [read_all, blocked])
        lags(before_marker - 1, before_marker)
        assert lags(before_marker - 1, before_marker) == [(2, None, False), blocked]
        producer.abort_transaction()
        assert lags(before_marker - 1, before_marker) == [(2, None, False), unknown], "to some consumers it is a record"


def test_a_topic_is_missing_only_if_the_monitor_may_describe_its_name(secure: SecureBroker) -> None:
    """Without DESCRIBE, a topic that exists and a misspelled one look alike, so neither is reported as missing.

    This is why the condition `subscribed_topic_missing` needs no further permission.
    """
    secure.add_user("narrow", PASSWORD)
    secure.grant([(ResourceType.CLUSTER, "kafka-cluster", ACLOperation.DESCRIBE)], "narrow")
    as_narrow = settings(secure, {**SCRAM, "username": "narrow"})
    plain = SecuritySettings()
    for address, security, expected in (
        (secure.broker.address("SECURE"), as_narrow, set()),
        (secure.broker.address("SECURE"), settings(secure, SCRAM), {"ordres"}),
        (secure.broker.bootstrap_servers, plain, {"ordres"}),
    ):
        with closing(connected(address, security)) as connection:
            brokers = Brokers("secure", connection, lambda: 0, samples_offsets_topic=False)
            sample = brokers.sample(["orders", "ordres"])
            assert sample.missing_topics == expected, security.username
            assert sample.topics.keys() == ({"orders", "ordres"} if expected else set()), security.username


def test_the_retention_settings_need_only_an_optional_permission(secure: SecureBroker) -> None:
    """Without DESCRIBE_CONFIGS the settings are unknown, and nothing else fails."""
    hour_ms, week_ms = 3_600_000, 7 * 24 * 3_600_000
    secure.add_user("curious", PASSWORD)
    secure.grant(LEAST_PERMISSIONS, "curious")
    with secure.admin() as admin:
        admin.create_topics(
            [
                NewTopic("for-an-hour", 1, 1, topic_configs={"retention.ms": str(hour_ms)}),
                NewTopic("for-ever", 1, 1, topic_configs={"cleanup.policy": "compact"}),
            ]
        )
    topics, as_curious = ["for-an-hour", "for-ever", "nowhere"], settings(secure, {**SCRAM, "username": "curious"})
    with closing(connected(secure.broker.address("SECURE"), as_curious)) as connection:
        configs = Configs(connection)
        assert (configs.offsets_retention_ms(), configs.topic_settings(topics)) == (None, {})
        permission = ACLOperation.DESCRIBE_CONFIGS
        secure.grant(
            [(ResourceType.CLUSTER, "kafka-cluster", permission), (ResourceType.TOPIC, "*", permission)],
            "curious",
        )
        until("DESCRIBE_CONFIGS", lambda: configs.offsets_retention_ms() == week_ms)
        found = {
            "for-an-hour": TopicSettings(hour_ms, is_compacted=False, has_size_limit=False),
            "for-ever": TopicSettings(None, is_compacted=True, has_size_limit=False),
        }
        until("topics", lambda: configs.topic_settings(topics) == found)


def test_doctor_prints_commands_that_grant_exactly_what_is_missing(secure: SecureBroker, tmp_path: Path) -> None:
    """A new user has no permission. After the printed commands, no permission is missing, and `run` can start."""
    secure.add_user("new", PASSWORD)
    checking = monitor(secure, tmp_path / "monitor", {**SCRAM, "username": "new"})

    def permissions() -> dict[str, dict[str, str]]:
        completed = checking._run("doctor", "--json")
        assert "hedge" not in completed.stdout + completed.stderr
        points = {point["point"]: point for point in map(json.loads, completed.stdout.splitlines())}
        assert points["brokers"]["status"] == "ok"
        assert completed.returncode == int(any(point["status"] == "failed" for point in points.values()))
        return {name: point for name, point in points.items() if name.startswith("permission ")}

    before = permissions()
    assert [point["status"] for point in before.values()] == ["failed"] * 4 + ["note"] * 3
    kinds = {"--topic": ResourceType.TOPIC, "--group": ResourceType.GROUP}
    for point in before.values():
        words = shlex.split(point["remedy"].partition(" (or set ")[0])
        assert words[words.index("--allow-principal") + 1] == "User:new"
        operation = ACLOperation[re.sub("(?<=[a-z])(?=[A-Z])", "_", words[words.index("--operation") + 1]).upper()]
        resource = (
            (ResourceType.CLUSTER, "kafka-cluster") if words[-1] == "--cluster" else (kinds[words[-2]], words[-1])
        )
        secure.grant([(*resource, operation)], "new")
    until("the permissions", lambda: {point["status"] for point in permissions().values()} == {"ok"})


def _commits(topic: str, committed: Sequence[int], now_ms: int) -> pa.Table:
    """Return commits of one group, one for each partition of the topic."""
    rows = [(0, commit_key("late", topic, at), now_ms, now_ms, offset) for at, offset in enumerate(committed)]
    names = ("offsets_topic_partition", "key", "offsets_topic_offset", "timestamp_ms", "committed_offset")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=COMMIT_SCHEMA)


def test_without_a_right_on_the_log_run_names_the_polling_source_which_needs_none(
    secure: SecureBroker, tmp_path: Path
) -> None:
    """Managed clusters do not give access to `__consumer_offsets`. First READ is missing here, then also DESCRIBE.

    With DESCRIBE on other topics, groups and the cluster, the polling source shows members, commits and lag.
    """
    secure.add_user("poller", PASSWORD)
    secure.grant(ADMIN_API_PERMISSIONS, "poller")
    as_poller = {**SCRAM, "username": "poller"}
    hint = 'set source.kind = "admin-api"'
    by_log = monitor(secure, tmp_path / "by-log", as_poller)
    error = by_log.refused_command("run")
    assert "the monitor has no permission to read __consumer_offsets" in error
    assert hint in error
    secure.deny((ResourceType.TOPIC, OFFSETS_TOPIC, ACLOperation.DESCRIBE), "poller")
    assert hint in by_log.refused_command("run")
    group = Group(secure.broker.bootstrap_servers, "packing")
    group.join(["orders"])
    joining = Joining("picking", "picking-client", ["orders"])
    member = Member(librdkafka(secure.broker.bootstrap_servers, group_protocol="consumer"), joining)
    polling = monitor(secure, tmp_path / "by-polling", as_poller, SOURCE__KIND="admin-api")
    try:
        polling.start().wait_until_ready()
        for group_id, state, members in (("packing", "Stable", 1), ("picking", "Stable", 1), ("shipping", "Empty", 0)):
            of_group = {"group": group_id}
            until("members", partial(_has_value, members, polling, "rebalance_monitor_group_members", of_group))
            until("the state", lambda: polling.group_state(group_id) == state)  # noqa: B023 - called in its iteration
            until("the lag", partial(_has_value, 0, polling, "rebalance_monitor_group_lag", of_group))
        of_modern = {"group_type": "consumer", "protocol": "uniform", "group": "picking"}
        assert polling.value("rebalance_monitor_group_info", **of_modern) == 1
        assert polling.value("rebalance_monitor_group_generation", group="picking"), "the answers have KIP-848's epochs"
        of_strategy = {"group": "picking", "strategy": "uniform"}
        until("drift", partial(_has_value, 0, polling, "rebalance_monitor_drift_partitions", of_strategy))
        assert polling.stop() == 0
        log = polling.log.read_text()
        assert " INFO default: found 1 broker (Kafka " in log
        assert "information that the brokers do not return: generation id, leader, rebalances between polls" in log
    finally:
        member.leave()
        group.leave_all()


def _has_value(wanted: float, watching: MonitorProcess, metric: str, labels: Mapping[str, str]) -> bool:
    return watching.value(metric, **labels) == wanted


def _command_lines_and_environments(watching: MonitorProcess) -> str:
    """Return the command lines of the monitor and its child processes, and the environment of the child processes."""
    assert watching.process is not None
    parent = psutil.Process(watching.process.pid)
    children = parent.children(recursive=True)
    assert any("java" in child.name() for child in children)
    texts = [str(parent.cmdline())]
    for child in children:
        with suppress(psutil.NoSuchProcess):  # Spark's workers start and end
            texts.append(f"{child.cmdline()} {child.environ()}")
    return " ".join(texts)


def _spark_pages(ui_port: int) -> Mapping[str, str]:
    """Return the pages of Spark's UI by path: settings, the query, and every plan it has run."""
    [application] = json.loads(_page(ui_port, "/api/v1/applications"))
    executions = json.loads(_page(ui_port, f"/api/v1/applications/{application['id']}/sql?details=false&length=1000"))
    assert executions
    paths = ["/SQL/", "/environment/", "/StreamingQuery/", "/jobs/", "/executors/"]
    plans = [f"/SQL/execution/?id={execution['id']}" for execution in executions]
    return {path: _page(ui_port, path) for path in [*paths, *plans]}


def _page(ui_port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{ui_port}{path}", timeout=30) as response:
        text: str = response.read().decode()
    return text


@pytest.mark.parametrize(
    ("given", "message"),
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
            "the monitor has no permission to read __consumer_offsets: grant READ and DESCRIBE on it, or set",
        ),
    ],
    ids=["wrong password", "unknown authority", "missing permission"],
)
def test_a_refused_start_is_one_line_and_an_exit_code(
    secure: SecureBroker, tmp_path: Path, given: Mapping[str, str], message: str
) -> None:
    """The monitor ends instead of trying again, because the user waits for it."""
    error = monitor(secure, tmp_path / "monitor", given).refused_command("run")
    assert message in error
    assert error.startswith("Error: ")
    assert len(error.splitlines()) == 1


def settings(secure: SecureBroker, given: Mapping[str, str]) -> SecuritySettings:
    """Return security settings with the files of the broker's folder."""
    with_paths = {name: secure.folder / value if name.endswith("_file") else value for name, value in given.items()}
    return SecuritySettings.model_validate(with_paths)


def oauth(secure: SecureBroker, **more: str) -> dict[str, str]:
    """Return settings for OAUTHBEARER with the test's token endpoint, which uses TLS."""
    return {**OAUTH, "oauth_token_endpoint": secure.token_endpoint, "oauth_ca_file": "ca.pem", **more}


def connected(bootstrap_servers: str, security: SecuritySettings, connect_timeout_seconds: float = 10) -> Connection:
    kafka = KafkaSettings(
        bootstrap_servers=bootstrap_servers, connect_timeout_seconds=connect_timeout_seconds, security=security
    )
    return Connection(kafka, 10)


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with spark_session(SparkSettings.model_validate({"conf": SPARK_CONF})) as started:
        yield started


def test_both_clients_authenticate_in_every_way_with_the_same_settings(
    secure: SecureBroker, session: SparkSession
) -> None:
    """kafka-python lists brokers and Spark reads the topic. The broker checks the password, token or certificate."""
    ways = {
        "PLAIN": ("SECURE", {**BY_PASSWORD, "mechanism": "PLAIN"}),
        "SCRAM-SHA-256": ("SECURE", {**BY_PASSWORD, "mechanism": "SCRAM-SHA-256"}),
        "SCRAM-SHA-512": ("SECURE", SCRAM),
        "OAUTHBEARER": ("SECURE", oauth(secure, oauth_scope="read")),
        "mTLS": ("MUTUAL", MUTUAL),
        "mTLS, the key with a password": (
            "MUTUAL",
            {**MUTUAL, "key_file": _encrypted_key(secure), "key_password": KEY_PASSWORD},
        ),
    }
    records = {}
    for way, (listener, given) in ways.items():
        address, security = secure.broker.address(listener), settings(secure, given)
        check_key(security, lambda: java_version(find_java()))
        with closing(connected(address, security)) as connection:
            assert connection.broker_ids() == [1], way
        records[way] = _record_count(session, address, security)
    assert records == dict.fromkeys(ways, records["SCRAM-SHA-512"])
    assert records["SCRAM-SHA-512"] > 0


def _encrypted_key(secure: SecureBroker) -> str:
    """Create a key in the form that the monitor's error message recommends for Java 17. Return its file name."""
    key, encrypted = secure.folder / "client.key", secure.folder / "old-locked.key"
    command = ["openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", str(key), "-out", str(encrypted)]
    subprocess.run([*command, "-passout", f"pass:{KEY_PASSWORD}"], check=True, capture_output=True)
    return encrypted.name


def _record_count(session: SparkSession, bootstrap_servers: str, security: SecuritySettings) -> int:
    with secrets_file(java_secrets(security, read_secrets(security))) as file:
        options = {
            "kafka.bootstrap.servers": bootstrap_servers,
            "assign": json.dumps({OFFSETS_TOPIC: list(range(OFFSETS_TOPIC_PARTITIONS))}),
            **spark_options(security, file),
        }
        return session.read.format("kafka").options(**options).load().count()


def test_an_error_of_the_broker_names_the_setting_to_check(secure: SecureBroker) -> None:
    """Each of these errors once looked like an unreachable broker, after the full connect timeout of ten minutes."""
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
    for address, given, message in refusals:
        with pytest.raises(RemedyError, match=f"^no access to {address}: .*{message}"):
            connected(address, settings(secure, given), connect_timeout_seconds=600)


def test_a_refusal_is_shown_even_if_the_broker_closes_the_connection_at_once(secure: SecureBroker) -> None:
    """If kafka-python reads the answer and the end of the connection together, it drops the answer.

    The error once came only after the connect timeout.
    """
    with last_answer_with_close(secure.broker.address("SECURE")) as address:
        wrong = settings(secure, {**BY_PASSWORD, "mechanism": "SCRAM-SHA-256", "password": "wrong"})
        with pytest.raises(AccessRefusedError, match=f"^no access to {address}: the broker rejects user 'monitor'"):
            connected(address, wrong, connect_timeout_seconds=60)


def test_the_error_for_a_port_that_closes_the_connection_names_possible_settings(secure: SecureBroker) -> None:
    """A plain port that gets TLS and a port that requires a certificate both close the connection without a reason."""
    tls_only = {"protocol": "SSL", "ca_file": "ca.pem"}
    for address in (secure.broker.bootstrap_servers, secure.broker.address("MUTUAL")):
        with pytest.raises(RemedyError, match=r"check kafka\.security\.(protocol and )?certificate_file"):
            connected(address, settings(secure, tls_only), connect_timeout_seconds=3)
