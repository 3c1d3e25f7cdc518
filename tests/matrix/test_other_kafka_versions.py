"""Run the end-to-end scenarios on older and newer brokers, and check that every record they write can be decoded.

Brokers differ in the coordinator (Scala in 3.7, Java in later versions), in the types and versions of the records that
they write, and in the group types that they support.
"""

from __future__ import annotations

import pytest

from streaming.embedded import EmbeddedBroker
from streaming.protocol import RecordType
from tests.end_to_end import test_agrees_with_kafka
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.members import Joining, OpenClient
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.test_every_client_agrees import Join, Stage, run_group_lifecycle, the_clients

_CLASSIC = {RecordType.OFFSET_COMMIT, RecordType.GROUP_METADATA}
_CONSUMER = {
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
}
_SHARE_AND_STREAMS = {each for each in RecordType if each.name.startswith(("SHARE_GROUP", "STREAMS_GROUP"))}
_WRITTEN = {
    "3.7.2": _CLASSIC,
    # Since 4.1 the group's record contains a hash of the topics instead of this record.
    "3.9.2": _CLASSIC | _CONSUMER | {RecordType.CONSUMER_GROUP_PARTITION_METADATA},
    "4.3.1": _CLASSIC | _CONSUMER | _SHARE_AND_STREAMS,
}
"""Record types that each version writes for the clients of these tests."""

pytestmark = [pytest.mark.slow, pytest.mark.matrix]


def test_members_assignments_commits_and_lag_agree_with_the_admin_api(
    broker: EmbeddedBroker, kafka_reference: KafkaReference, shared_monitor: MonitorProcess, name: str
):
    """The scenario is the same as in `make test`."""
    scenario = test_agrees_with_kafka
    scenario.test_members_assignments_commits_and_lag_agree_while_consumers_join_leave_and_commit(
        broker, kafka_reference, shared_monitor, name
    )
    decoded, refused = kafka_reference.record_types()
    assert refused == {}
    assert decoded >= {RecordType.OFFSET_COMMIT, RecordType.GROUP_METADATA}


def test_every_client_that_the_version_knows_is_shown_as_kafka_describes_it(  # noqa: PLR0913, PLR0917 - fixtures
    stage: Stage,
    java_of_its_time: JavaClients,
    join: Join,
    kafka_reference: KafkaReference,
    kafka_version: str,
    name: str,
):
    """3.9 has a preview of consumer groups (KIP-848), and 4.x has share and streams groups. No record is quarantined.

    The early access of KIP-848 in 3.7 has a different format: `tests/streaming/protocol/test_early_access.py`.
    """
    for client in _clients_of_no_consumer_group(kafka_version):
        join(the_clients(stage)[client][1], Joining(f"{name}-{client}", client, stage.topics))
    run_group_lifecycle(stage, join, name, _clients_known_to(kafka_version, stage, java_of_its_time))
    until("every record type", lambda: kafka_reference.record_types()[0] >= _WRITTEN[kafka_version])
    assert kafka_reference.record_types() == (_WRITTEN[kafka_version], {})
    assert sum(stage.monitor.by_label("rebalance_monitor_records_skipped_total", "reason").values()) == 0
    assert stage.monitor.rows("quarantine") == []


def _clients_known_to(
    kafka_version: str, stage: Stage, java_of_its_time: JavaClients
) -> dict[str, tuple[str, OpenClient]]:
    """Return one of each client and group type. A broker treats all strategies of classic groups in the same way."""
    every = the_clients(stage)
    classic = {client: every[client] for client in ("kafka-python-cooperative", "librdkafka-range", "java-sticky")}
    if kafka_version.startswith("3.7."):
        return classic
    if kafka_version.startswith("3.9."):
        return classic | {"java-preview": ("consumer", java_of_its_time.consumer())}
    consumer = ("librdkafka-consumer", "java-uniform", "java-remote-range")
    return classic | {client: every[client] for client in consumer}


def _clients_of_no_consumer_group(kafka_version: str) -> tuple[str, ...]:
    return ("java-share", "java-streams") if kafka_version.startswith("4.") else ()
