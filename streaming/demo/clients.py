"""`python -m streaming.demo.clients` is one client process of the demo. SIGTERM stops the process.

The process runs the producer, or all members that use one client library. Each member runs in a separate thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable

import click
from kafka import KafkaProducer
from kafka.errors import KafkaError

from streaming.demo.groups import DEMO_GROUPS, DemoGroup
from streaming.demo.pace import MembershipPeriod
from streaming.demo.topics import DemoTopic
from streaming.stop_signals import stop_event

_LOGGER = logging.getLogger(__name__)
_PRODUCE_INTERVAL_SECONDS = 0.5
_RETRY_SECONDS = 1.0


@click.command()
@click.option("--bootstrap-servers", required=True)
@click.option("--role", type=click.Choice(["producer", "kafka-python", "librdkafka"]), required=True)
@click.argument("group_ids", nargs=-1)
def main(bootstrap_servers: str, role: str, group_ids: tuple[str, ...]) -> None:
    """Run the producer for the topics of the given groups, or run the members of these groups."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = stop_event()
    groups = [group for group in DEMO_GROUPS if group.group_id in group_ids]
    if role == "producer":
        topics = {topic for group in groups for topic in group.topics}
        _repeat_until_stopped(lambda: produce(bootstrap_servers, topics, stop), stop)
    else:
        run_members(bootstrap_servers, [group for group in groups if group.client == role], stop)


def run_members(bootstrap_servers: str, groups: Iterable[DemoGroup], stop: threading.Event) -> None:
    """Run each member in a separate thread until `stop` is set."""
    threads = [
        threading.Thread(target=_run_member, args=(bootstrap_servers, group, number, stop), name=group.group_id)
        for group in groups
        for number in range(len(group.members))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _run_member(bootstrap_servers: str, group: DemoGroup, number: int, stop: threading.Event) -> None:
    member, client_id = group.members[number], f"{group.group_id}-{number}"
    # The imports are here, so that each process loads only its own client library.
    if group.client == "librdkafka":
        from streaming.demo.librdkafka_member import consume  # noqa: PLC0415
    else:
        from streaming.demo.kafka_python_member import consume  # noqa: PLC0415

    def join_and_leave() -> None:
        consume(bootstrap_servers, group, member, client_id, MembershipPeriod(stop, member.stay_seconds or None))
        stop.wait(member.absence_seconds)

    _repeat_until_stopped(join_and_leave, stop)


def _repeat_until_stopped(action: Callable[[], None], stop: threading.Event) -> None:
    """Restart the action each time it ends or fails, like a real service."""
    while not stop.is_set():
        try:
            action()
        except (KafkaError, OSError):  # noqa: PERF203 - at most once per second
            _LOGGER.exception("a demo client failed and will restart")
            stop.wait(_RETRY_SECONDS)


def produce(bootstrap_servers: str, topics: Collection[DemoTopic], stop: threading.Event) -> None:
    """Write to each topic at the topic's rate until the process stops."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=100, metrics_enabled=False)
    ordered = sorted(topics, key=lambda topic: topic.name)
    try:
        sent = dict.fromkeys(ordered, 0)
        tick = 0
        while not stop.wait(_PRODUCE_INTERVAL_SECONDS):
            tick += 1
            for topic in ordered:
                due = int(tick * _PRODUCE_INTERVAL_SECONDS * topic.records_per_second)
                for number in range(sent[topic], due):
                    _send(producer, topic, number)
                sent[topic] = due
    finally:
        producer.close(timeout=2)


def _send(producer: KafkaProducer, topic: DemoTopic, number: int) -> None:
    """Send one record. If the topic has keys, kafka-python's default partitioner chooses the partition."""
    value = f"record {number}".encode()
    if topic.keys:
        producer.send(topic.name, key=topic.keys[number % len(topic.keys)].encode(), value=value)
    else:
        producer.send(topic.name, partition=number % topic.partitions, value=value)


if __name__ == "__main__":
    main()
