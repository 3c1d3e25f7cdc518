"""Runs a real Kafka broker on the loopback interface, for the demo, the tests and the benchmark.

The package may import `jars` and `config`.
"""

from __future__ import annotations

from streaming.embedded.broker import BrokerError, EmbeddedBroker

__all__ = ["BrokerError", "EmbeddedBroker"]
