"""Fixtures of the end-to-end tests on brokers of other Kafka versions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.embedded import EmbeddedBroker
from streaming.jars import BROKER_SETS, KAFKA_VERSION
from tests.end_to_end.conftest import QUICK_BROKER, kafka_reference, name, shared_monitor
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.test_every_client_agrees import join, stage

__all__ = ["join", "kafka_reference", "name", "shared_monitor", "stage"]

OTHER_VERSIONS = tuple(version for version in BROKER_SETS if version != KAFKA_VERSION)
_PREVIEWS = {"3.9.2": {"group.coordinator.rebalance.protocols": "classic,consumer"}}


@pytest.fixture(scope="session", params=OTHER_VERSIONS)
def kafka_version(request: pytest.FixtureRequest) -> str:
    """Return a Kafka version. `make test` runs everything on the default version."""
    version: str = request.param
    return version


@pytest.fixture(scope="session")
def broker(kafka_version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Run one broker per version. 3.7 has the old group coordinator, 3.9 the new one with its preview of KIP-848."""
    properties = {**QUICK_BROKER, **_PREVIEWS.get(kafka_version, {})}
    folder = tmp_path_factory.mktemp(f"kafka-{kafka_version}")
    with EmbeddedBroker(folder, properties=properties, kafka_version=kafka_version) as running:
        yield running


@pytest.fixture(scope="session")
def java_of_its_time(
    broker: EmbeddedBroker, kafka_version: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaClients]:
    """Run Java clients of the broker's version. Clients of 4.x use a consumer protocol that 3.9 does not support."""
    clients = JavaClients(broker.bootstrap_servers, tmp_path_factory.mktemp("java"), kafka_version)
    yield clients
    clients.close()
