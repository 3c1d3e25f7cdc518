"""The end-to-end scenarios hold against older and newer brokers, and every record that these write is read.

Brokers differ in who writes the log (the Scala coordinator of 3.7, the Java one since), in the record types and
versions they write, and in the group types they know.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.embedded import EmbeddedBroker
from streaming.protocol import RecordType
from tests.end_to_end import test_agrees_with_kafka
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.members import Joining, OpenClient
from tests.end_to_end.monitor_process import until
from tests.end_to_end.test_every_client_agrees import Join, Stage, live_a_whole_life, the_clients
from tests.end_to_end.what_kafka_says import WhatKafkaSays

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
    # Since 4.1 the group's own record carries a hash of the topics instead of this one telling them.
    "3.9.2": _CLASSIC | _CONSUMER | {RecordType.CONSUMER_GROUP_PARTITION_METADATA},
    "4.3.1": _CLASSIC | _CONSUMER | _SHARE_AND_STREAMS,
}
"""The record types that the clients of these tests make each version write."""

pytestmark = [pytest.mark.slow, pytest.mark.matrix]


def test_members_assignments_commits_and_lag_agree_with_the_admin_api(
    broker: EmbeddedBroker, kafka_says: WhatKafkaSays, folder: Path, name: str
):
    """The scenario of `make test`, step by step the same."""
    scenario = test_agrees_with_kafka
    scenario.test_members_assignments_commits_and_lag_agree_while_consumers_join_leave_and_commit(
        broker, kafka_says, folder, name
    )
    decoded, refused = kafka_says.record_types()
    assert refused == {}
    assert decoded >= {RecordType.OFFSET_COMMIT, RecordType.GROUP_METADATA}


def test_every_client_that_the_version_knows_is_shown_as_kafka_describes_it(  # noqa: PLR0913, PLR0917 - fixtures
    stage: Stage,
    java_of_its_time: JavaClients,
    join: Join,
    kafka_says: WhatKafkaSays,
    kafka_version: str,
    name: str,
):
    """Consumer groups (KIP-848) since the preview of 3.9, share and streams groups in 4.x: none of it is quarantined.

    3.7's early access of KIP-848 is another format: `tests/streaming/protocol/test_early_access.py`.
    """
    for client in _clients_of_no_consumer_group(kafka_version):
        join(the_clients(stage)[client][1], Joining(f"{name}-{client}", client, stage.topics))
    live_a_whole_life(stage, join, name, _clients_known_to(kafka_version, stage, java_of_its_time))
    until("every record type", lambda: kafka_says.record_types()[0] >= _WRITTEN[kafka_version])
    assert kafka_says.record_types() == (_WRITTEN[kafka_version], {})
    assert sum(stage.monitor.by_label("rebalance_monitor_records_skipped_total", "reason").values()) == 0
    assert stage.monitor.rows("quarantine") == []


def _clients_known_to(
    kafka_version: str, stage: Stage, java_of_its_time: JavaClients
) -> dict[str, tuple[str, OpenClient]]:
    """Return one of each client and group type. A classic group's strategy is nothing to its broker, so one will do."""
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
