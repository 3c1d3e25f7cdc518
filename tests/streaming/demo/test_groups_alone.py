"""`python -m streaming.demo`: the demo's groups on brokers that run already, as the compose file starts them."""

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


def test_a_group_is_played_until_sigterm_and_left_in_order(broker: EmbeddedBroker):
    """A container is stopped by SIGTERM; a member that does not leave keeps its partitions for a session timeout."""
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
    except KafkaException:  # nobody has joined it yet
        return ConsumerGroupState.DEAD, 0
    return described.state, len(described.members)


def _within(seconds: float, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not so within {seconds:g} s"
        time.sleep(0.3)
