"""What the embedded broker's server.properties says, and why. Values in, values out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"


class Listener(NamedTuple):
    """A way in beside the plain one: Kafka's name of it, such as `SASL_SSL`, and its port."""

    protocol: str
    port: int


def broker_properties(
    log_dir: str,
    port: int,
    controller_port: int,
    overrides: Mapping[str, str] | None = None,
    more_listeners: Mapping[str, Listener] | None = None,
) -> dict[str, str]:
    """Return the properties of a single node that is both broker and controller; `overrides` win.

    `more_listeners` are by name; what they need beside (keys, mechanisms) is said in `overrides`.

    The same for every version of Kafka: a broker takes no notice of a property that it doesn't know, such as those of
    share groups before 4.0.
    """
    clients = {"CLIENT": Listener("PLAINTEXT", port), **(more_listeners or {})}
    advertised = ",".join(f"{name}://{LOOPBACK}:{listener.port}" for name, listener in clients.items())
    protocols = ",".join(f"{name}:{listener.protocol}" for name, listener in clients.items())
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        # A static quorum: a dynamic one writes the controller's port into the log, and a folder could then not be
        # started again on other ports.
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"{advertised},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": log_dir,
        "auto.create.topics.enable": "false",
        **_ONE_REPLICA,
        **_SMALL,
        **_QUICK,
        **(overrides or {}),
    }


def format_properties(properties: Mapping[str, str]) -> str:
    r"""Write them as a Java properties file, in which a backslash escapes.

    Example: `{"log.dirs": "C:\x"}` is written as `log.dirs=C:\\x`.
    """
    return "".join(f"{name}={_escaped(value)}\n" for name, value in sorted(properties.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


_ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

# It shares a laptop with Spark: few threads, and not the 128 MiB of heap that the log cleaner takes by default.
_SMALL = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "group.coordinator.threads": "2",
    "log.cleaner.dedupe.buffer.size": "33554432",
}

# Kafka waits 3 s for more members before a new group's first rebalance; a person watching a demo needn't.
_QUICK = {"group.initial.rebalance.delay.ms": "100"}
