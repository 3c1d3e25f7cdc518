"""A real broker, and groups that live on it some at a time: what capturing and comparing them have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer

from streaming.embedded import EmbeddedBroker
from tests.clients.groups import GroupPlan
from tests.clients.members import Programs
from tests.clients.scenario import LiveGroup, Step, create_topics, settle
from tests.end_to_end.conftest import QUICK_BROKER
from tests.end_to_end.group_description import GroupDescription
from tests.end_to_end.java_clients import JavaClients

CLIENTS_BROKER = {
    **QUICK_BROKER,
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "10000",
}
RECORDS_A_STEP = 3
_AT_A_TIME = 12

AfterStep = Callable[[Sequence[LiveGroup], Step, Mapping[str, str]], None]
"""Gets the groups, the step that they have settled after, and what is wrong with those that have not, by group."""


@dataclass(frozen=True)
class Stage:
    """The broker, Kafka's Admin, and the folder for the logs of members."""

    bootstrap_servers: str
    java: JavaClients
    folder: Path

    def describe(self, group_ids: Sequence[str]) -> Mapping[str, GroupDescription]:
        """Groups as Kafka's Admin describes them."""
        return self.java.describe("consumer", group_ids)

    def live(self, wave: Sequence[GroupPlan], steps: Sequence[Step], after_step: AfterStep) -> None:
        """Let some groups go through every step, side by side. After each step some records come to all topics."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        create_topics(admin, wave)
        programs = Programs(self.bootstrap_servers, self.folder)
        groups = [LiveGroup(plan, programs, plan.partitions()) for plan in wave]
        try:
            for step in steps:
                for group in groups:
                    step.happens(group, admin)
                wrong = settle(groups, self.describe)
                _produce(self.bootstrap_servers, groups)
                after_step(groups, step, wrong)
        finally:
            programs.end()
            admin.close()


@contextmanager
def opened_stage(folder: Path) -> Iterator[Stage]:
    """Start a broker and Java's Admin, and end both."""
    with EmbeddedBroker(folder / "kafka", properties=CLIENTS_BROKER) as broker:
        java = JavaClients(broker.bootstrap_servers, folder)
        java.commits("nobody")  # A new broker has no __consumer_offsets until a coordinator is asked for.
        try:
            yield Stage(broker.bootstrap_servers, java, folder)
        finally:
            java.close()


def waves(wanted: Sequence[GroupPlan]) -> list[Sequence[GroupPlan]]:
    """Groups a few at a time; dynamic and static ones apart: a static group's steps take as long as its sessions."""
    found: list[Sequence[GroupPlan]] = []
    for _, alike in groupby(sorted(wanted, key=lambda plan: plan.static), key=lambda plan: plan.static):
        of_kind = list(alike)
        found += [of_kind[at : at + _AT_A_TIME] for at in range(0, len(of_kind), _AT_A_TIME)]
    return found


def _produce(bootstrap_servers: str, groups: Sequence[LiveGroup]) -> None:
    """Partition n gets n records more than partition 0: offsets of partitions that were mixed up differ."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)  # A new one knows of partitions that are new.
    for group in groups:
        for topic, count in group.partitions.items():
            for partition in range(count):
                for _ in range(RECORDS_A_STEP + partition):
                    producer.send(topic, value=b"a record", partition=partition)
    producer.flush()
    producer.close()
