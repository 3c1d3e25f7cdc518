"""Test `python -m streaming.demo`: the demo's groups on running brokers, as the compose file starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from streaming.embedded import EmbeddedBroker

pytestmark = pytest.mark.slow

_COMMAND = [sys.executable, "-m", "streaming.demo", "--bootstrap-servers"]


def test_a_group_runs_until_sigterm_and_its_members_leave(broker: EmbeddedBroker):
    """SIGTERM stops a container. A member that does not leave keeps its partitions until its session times out."""
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        playing = subprocess.Popen([*_COMMAND, broker.bootstrap_servers, "--group", "demo-idle"])
        try:
            _within(40, lambda: _state(admin) == (ConsumerGroupState.STABLE, 5))
            playing.send_signal(signal.SIGTERM)
            assert playing.wait(60) == 0
        finally:
            playing.kill()
        _within(5, lambda: _state(admin)[1] == 0)


def _state(admin: AdminClient) -> tuple[ConsumerGroupState, int]:
    try:
        described = admin.describe_consumer_groups(["demo-idle"])["demo-idle"].result(10)
    except KafkaException:  # no member has joined yet
        return ConsumerGroupState.DEAD, 0
    return described.state, len(described.members)


def _within(seconds: float, is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not true within {seconds:g} s"
        time.sleep(0.3)
