"""Test server.properties: the caller's values override the defaults, and Java can read the file."""

from __future__ import annotations

from streaming.embedded.ports import free_port, is_taken
from streaming.embedded.properties import Listener, broker_properties, format_properties


def test_the_callers_values_override_the_defaults():
    ours = broker_properties("/topics", 1, 2)
    assert ours["offsets.topic.num.partitions"] == "50"
    theirs = broker_properties("/topics", 1, 2, {"offsets.topic.num.partitions": "3", "log.retention.hours": "1"})
    assert theirs["offsets.topic.num.partitions"] == "3"
    assert theirs["log.retention.hours"] == "1"


def test_the_broker_listens_only_on_loopback():
    listeners = broker_properties("/topics", 9092, 9093)["listeners"]
    assert listeners == "CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"


def test_a_further_listener_has_its_protocol_and_is_also_on_loopback():
    """Its keys and mechanisms are set with Kafka's own properties."""
    properties = broker_properties("/topics", 1, 2, more_listeners={"SECURE": Listener("SASL_SSL", 3)})
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:1,SECURE://127.0.0.1:3"
    assert properties["listeners"] == f"{properties['advertised.listeners']},CONTROLLER://127.0.0.1:2"
    protocols = properties["listener.security.protocol.map"]
    assert protocols == "CLIENT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"


def test_a_backslash_reaches_java_as_one():
    r"""java.util.Properties reads `\t` as a tab, which would change a folder named `a\topics`."""
    assert format_properties({"b": "2", "a": "x\\topics\ny"}) == "a=x\\\\topics\\ny\nb=2\n"


def test_a_free_port_is_outside_the_range_that_the_kernel_gives_to_clients():
    """A client that reconnects to a stopped broker could be given the broker's port and connect to itself."""
    port = free_port()
    assert port < 32_768
    assert not is_taken(port)


def test_two_servers_of_a_process_never_get_the_same_free_port():
    """A broker of the benchmark got one port for its two listeners and could not start."""
    ports = [free_port() for _ in range(1_000)]
    assert len(set(ports)) == len(ports)
