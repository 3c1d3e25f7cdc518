"""Runs groups in waves on a real broker, for `capture.py` and `run.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer

from streaming.embedded import EmbeddedBroker
from tests.clients.groups import GroupPlan
from tests.clients.members import MemberProcesses
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
_GROUPS_PER_WAVE = 12

AfterStep = Callable[[Sequence[LiveGroup], Step, Mapping[str, str]], None]
"""Receives the groups, the step, and the problem of each group that has not settled after it."""


@dataclass(frozen=True)
class Stage:
    """The broker, Kafka's Admin, and the folder for the members' logs."""

    bootstrap_servers: str
    java: JavaClients
    folder: Path

    def describe(self, group_ids: Sequence[str]) -> Mapping[str, GroupDescription]:
        """Return the descriptions of groups by Kafka's Admin."""
        return self.java.describe("consumer", group_ids)

    def run_steps(self, wave: Sequence[GroupPlan], steps: Sequence[Step], after_step: AfterStep) -> None:
        """Run every step in some groups at the same time. After each step, write some records to all topics."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        create_topics(admin, wave)
        programs = MemberProcesses(self.bootstrap_servers, self.folder)
        groups = [LiveGroup(plan, programs, plan.partitions()) for plan in wave]
        try:
            for step in steps:
                for group in groups:
                    step.action(group, admin)
                wrong = settle(groups, self.describe)
                _produce(self.bootstrap_servers, groups)
                after_step(groups, step, wrong)
        finally:
            programs.end()
            admin.close()


@contextmanager
def open_stage(folder: Path) -> Iterator[Stage]:
    """Start a broker and Java's Admin, and stop both at the end."""
    with EmbeddedBroker(folder / "kafka", properties=CLIENTS_BROKER) as broker:
        java = JavaClients(broker.bootstrap_servers, folder)
        java.commits("no-group")  # the first request for a coordinator creates __consumer_offsets
        try:
            yield Stage(broker.bootstrap_servers, java, folder)
        finally:
            java.close()


def waves(wanted: Sequence[GroupPlan]) -> list[Sequence[GroupPlan]]:
    """Split the groups into waves. Dynamic and static groups are separate, because static groups take longer."""
    result: list[Sequence[GroupPlan]] = []
    for _, same_kind in groupby(sorted(wanted, key=lambda plan: plan.static), key=lambda plan: plan.static):
        of_kind = list(same_kind)
        result += [of_kind[at : at + _GROUPS_PER_WAVE] for at in range(0, len(of_kind), _GROUPS_PER_WAVE)]
    return result


def _produce(bootstrap_servers: str, groups: Sequence[LiveGroup]) -> None:
    """Write records. Partition n gets n records more than partition 0, so mixed-up partitions have wrong offsets."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)  # a new producer knows new partitions
    for group in groups:
        for topic, count in group.partitions.items():
            for partition in range(count):
                for _ in range(RECORDS_A_STEP + partition):
                    producer.send(topic, value=b"a record", partition=partition)
    producer.flush()
    producer.close()
