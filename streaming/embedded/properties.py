"""Creates the server.properties of the embedded broker. The functions have no side effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LOOPBACK = "127.0.0.1"


class Listener(NamedTuple):
    """A listener of the broker: its Kafka security protocol, for example `SASL_SSL`, and its port."""

    protocol: str
    port: int


def broker_properties(  # noqa: PLR0913 - the inputs of the properties
    log_dir: str,
    port: int,
    controller_port: int,
    overrides: Mapping[str, str] | None = None,
    more_listeners: Mapping[str, Listener] | None = None,
    *,
    is_controller: bool = True,
) -> dict[str, str]:
    """Return the properties of a broker. The first broker of a cluster is also the controller, and its `node.id` is 1.

    `overrides` replaces properties with the same name. `more_listeners` contains additional listeners by name.
    `overrides` must contain their TLS keys and SASL mechanisms. Brokers ignore unknown properties, so the properties
    are the same for every version of Kafka.
    """
    clients = {"CLIENT": Listener("PLAINTEXT", port), **(more_listeners or {})}
    advertised = ",".join(f"{name}://{LOOPBACK}:{listener.port}" for name, listener in clients.items())
    protocols = ",".join(f"{name}:{listener.protocol}" for name, listener in clients.items())
    controller = f",CONTROLLER://{LOOPBACK}:{controller_port}" if is_controller else ""
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": "1",
        # The quorum is static, because a dynamic quorum writes the controller's port into the log. Then the broker
        # could not restart in the same folder with different ports.
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"{advertised}{controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": log_dir,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "50",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # The broker shares a laptop with Spark. So it has few threads, and the log cleaner uses less memory than its
        # default of 128 MiB.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "group.coordinator.threads": "2",
        "log.cleaner.dedupe.buffer.size": "33554432",
        # By default, Kafka waits 3 s for more members before the first rebalance of a new group.
        "group.initial.rebalance.delay.ms": "100",
        **(overrides or {}),
    }


def format_properties(properties: Mapping[str, str]) -> str:
    r"""Return the text of a Java properties file. For example, `{"log.dirs": "C:\x"}` becomes `log.dirs=C:\\x`."""
    escaped = str.maketrans({"\\": "\\\\", "\n": "\\n"})
    return "".join(f"{name}={value.translate(escaped)}\n" for name, value in sorted(properties.items()))
