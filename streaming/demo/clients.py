"""`python -m streaming.demo.clients`: one process of the demo's load, ended by SIGTERM.

It runs the members of some groups that use one client library, a thread each, or the producer.
"""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING

import click
from kafka import KafkaProducer
from kafka.errors import KafkaError

from streaming.demo.groups import DEMO_GROUPS, DemoGroup, DemoMember
from streaming.demo.pace import Stint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from streaming.demo.topics import DemoTopic

_LOGGER = logging.getLogger(__name__)
_PRODUCE_EVERY_SECONDS = 0.5
_RETRY_SECONDS = 1.0


@click.command()
@click.option("--bootstrap-servers", required=True)
@click.option("--role", type=click.Choice(["producer", "kafka-python", "librdkafka"]), required=True)
@click.argument("group_ids", nargs=-1)
def main(bootstrap_servers: str, role: str, group_ids: tuple[str, ...]) -> None:
    """Produce for the groups named, or be their members."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    groups = [group for group in DEMO_GROUPS if group.group_id in group_ids]
    if role == "producer":
        _until_stopped(lambda: _produce(bootstrap_servers, {t for group in groups for t in group.topics}, stop), stop)
    else:
        _run_members(bootstrap_servers, [group for group in groups if group.client == role], stop)


def _run_members(bootstrap_servers: str, groups: list[DemoGroup], stop: threading.Event) -> None:
    threads = [
        threading.Thread(target=_be_member, args=(bootstrap_servers, group, number, stop), name=group.group_id)
        for group in groups
        for number in range(len(group.members))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _be_member(bootstrap_servers: str, group: DemoGroup, number: int, stop: threading.Event) -> None:
    """Join and leave as the member does, until stopped."""
    member, client_id = group.members[number], f"{group.group_id}-{number}"
    consume = _consume_of(group)

    def once() -> None:
        consume(bootstrap_servers, group, member, client_id, Stint(stop, member.in_seconds or None))
        stop.wait(member.out_seconds)

    _until_stopped(once, stop)


def _consume_of(group: DemoGroup) -> Callable[[str, DemoGroup, DemoMember, str, Stint], None]:
    # Imported here: each process loads just its own client library.
    if group.client == "librdkafka":
        from streaming.demo import librdkafka_member  # noqa: PLC0415

        return librdkafka_member.consume
    from streaming.demo import kafka_python_member  # noqa: PLC0415

    return kafka_python_member.consume


def _until_stopped(act: Callable[[], None], stop: threading.Event) -> None:
    """Act again and again: a real client's service is restarted when it fails, as when its broker went away."""
    while not stop.is_set():
        try:
            act()
        except (KafkaError, OSError):  # noqa: PERF203 - once a second at most
            _LOGGER.exception("a demo client failed and is started again")
            stop.wait(_RETRY_SECONDS)


def _produce(bootstrap_servers: str, topics: Collection[DemoTopic], stop: threading.Event) -> None:
    """Write to each topic at its rate, to its partitions in turn, until stopped."""
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=100, metrics_enabled=False)
    ordered = sorted(topics, key=lambda topic: topic.name)
    try:
        sent = dict.fromkeys(ordered, 0)
        tick = 0
        while not stop.wait(_PRODUCE_EVERY_SECONDS):
            tick += 1
            for topic in ordered:
                due = int(tick * _PRODUCE_EVERY_SECONDS * topic.records_per_second)
                for number in range(sent[topic], due):
                    producer.send(topic.name, partition=number % topic.partitions, value=f"record {number}".encode())
                sent[topic] = due
    finally:
        producer.close(timeout=2)


if __name__ == "__main__":
    main()
