"""Run Kafka's Java clients and its Java admin client in one JVM that Python controls.

py4j comes with pyspark, so the tests need no compiler and no JDK. The py4j gateway runs on the class path of the
embedded broker, so Python can call every class of Kafka. The JVM needs about 200 MB for any number of consumers.
Kafka's command-line tools would need one JVM for each consumer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from streaming.child_process import ChildProcess
from streaming.jars import BROKER_SETS, KAFKA_VERSION, resolve
from streaming.jars.ivy import pyspark_jars_folder
from streaming.java import find_java
from tests.conftest import C1_ONLY
from tests.end_to_end.group_description import GroupDescription, of_kafka
from tests.end_to_end.members import RACK, Consuming, Joining, OpenClient, Regex
from tests.end_to_end.monitor_process import until

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_BYTES_SERDE = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"
_POLL_MS = 300


class JavaClients:
    """One JVM with Java clients. `classic`, `consumer`, `share` and `streams` return a function that opens a client.

    `admin` is Java's Admin. Each Python thread has its own connection and its own Java thread, so consumers poll in
    parallel.
    """

    def __init__(self, bootstrap_servers: str, folder: Path, kafka_version: str = KAFKA_VERSION) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._folder = folder
        jars = (_py4j_jar(), *resolve(BROKER_SETS[kafka_version]), *resolve("streams"))
        class_path = os.pathsep.join(map(str, jars))
        jvm = [str(find_java()), "-Xmx256m", C1_ONLY, "-XX:+UseSerialGC", "-cp", class_path]
        command = [*jvm, "py4j.GatewayServer", "--enable-auth", "0"]
        self._process = ChildProcess(command, folder / "java-clients.out")
        port, token = until("the gateway's port", self._port_and_token, 30)
        # Without memory management, objects that Python frees stay in the JVM, which has room for them. py4j's
        # finalizers would do I/O during Python's garbage collection, which breaks Python's compiler (gh-106905).
        parameters = GatewayParameters(
            port=int(port), auth_token=token, auto_convert=True, enable_memory_management=False
        )
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self.clients = self._gateway.jvm.org.apache.kafka.clients
        self.admin = self.clients.admin.Admin.create({"bootstrap.servers": bootstrap_servers})
        self._to_json = self._object_mapper()

    def _port_and_token(self) -> list[str]:
        lines = self._process.output.read_text().splitlines(keepends=True)[:2]
        return [line.strip() for line in lines] if len(lines) == 2 and lines[1].endswith("\n") else []

    def close(self) -> None:
        """End the JVM."""
        self.admin.close()
        self._gateway.close()
        self._process.stop(10)

    def _object_mapper(self) -> Any:  # noqa: ANN401 - a Jackson ObjectMapper
        jackson = self._gateway.jvm.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper().registerModule(jackson.datatype.jdk8.Jdk8Module())
        any_field = getattr(jackson.annotation, "JsonAutoDetect$Visibility").ANY
        return mapper.setVisibility(jackson.annotation.PropertyAccessor.FIELD, any_field)

    def describe(self, group_type: str, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        """Return Kafka's description of groups. The type selects the request; classic and consumer share one."""
        requests = {"share": self.admin.describeShareGroups, "streams": self.admin.describeStreamsGroups}
        answers = requests.get(group_type, self.admin.describeConsumerGroups)(list(group_ids)).describedGroups()
        return {group_id: self._described(group_type, answers[group_id]) for group_id in group_ids}

    def _described(self, group_type: str, answer: Any) -> GroupDescription:  # noqa: ANN401 - a KafkaFuture
        """Convert an answer. It is transferred as one JSON document, because a call for each field would be slow."""
        try:
            return of_kafka(group_type, json.loads(self._to_json.writeValueAsString(answer.get())))
        except Py4JJavaError as error:
            if "GroupIdNotFoundException" in str(error.java_exception):
                return GroupDescription(group_type, "Dead")
            raise

    def delete(self, group_type: str, group_id: str) -> None:
        """Delete a group."""
        requests = {"share": self.admin.deleteShareGroups, "streams": self.admin.deleteStreamsGroups}
        requests.get(group_type, self.admin.deleteConsumerGroups)([group_id]).all().get()

    def commits(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return the committed offsets that Kafka lists, by (topic, partition)."""
        listed = self.admin.listConsumerGroupOffsets(group_id).partitionsToOffsetAndMetadata().get()
        commits: dict[tuple[str, int], int] = {}
        for at, commit in json.loads(self._to_json.writeValueAsString(listed)).items():
            topic, _, partition = at.rpartition("-")
            if commit is not None:
                commits[topic, int(partition)] = commit["offset"]
        return commits

    def classic(self, assignor: str) -> OpenClient:
        """Open a KafkaConsumer with one of its classic assignors, for example `RangeAssignor`."""
        strategy = f"org.apache.kafka.clients.consumer.{assignor}"
        configuration = {"partition.assignment.strategy": strategy, "heartbeat.interval.ms": "300"}
        return lambda joining: _Consumer(self, joining, configuration)

    def consumer(self, remote_assignor: str | None = None) -> OpenClient:
        """Open a KafkaConsumer with the consumer protocol (KIP-848). Without a name it has the default assignor."""
        named = {} if remote_assignor is None else {"group.remote.assignor": remote_assignor}
        return lambda joining: _Consumer(self, joining, {"group.protocol": "consumer", **named})

    def share(self) -> OpenClient:
        """Open a KafkaShareConsumer (KIP-932)."""
        return lambda joining: _ShareConsumer(self, joining)

    def streams(self, into: str, group_protocol: str = "streams") -> OpenClient:
        """Open a KafkaStreams that copies records into a topic, with its own protocol (KIP-1071) or with `classic`."""
        return lambda joining: _Streams(self, joining, into, group_protocol)

    def consumer_configuration(self, joining: Joining, **more: str) -> Mapping[str, str]:
        """Return the configuration that all Java consumers have in common."""
        return {
            "bootstrap.servers": self._bootstrap_servers,
            "group.id": joining.group_id,
            "client.id": joining.client_id,
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
            "metadata.max.age.ms": "1000",
            "client.rack": RACK,
            **more,
        }

    def streams_properties(self, joining: Joining, group_protocol: str) -> Any:  # noqa: ANN401 - a java.util.Properties
        """Return the properties of a KafkaStreams: its own state folder, and serdes that change nothing."""
        properties = self._gateway.jvm.java.util.Properties()
        for name, value in {
            "bootstrap.servers": self._bootstrap_servers,
            "application.id": joining.group_id,
            "client.id": joining.client_id,
            "group.protocol": group_protocol,
            "state.dir": str(self._folder / "streams" / joining.client_id),
            "default.key.serde": _BYTES_SERDE,
            "default.value.serde": _BYTES_SERDE,
            "commit.interval.ms": "300",
        }.items():
            properties.setProperty(name, value)
        return properties

    def duration(self, milliseconds: int) -> Any:  # noqa: ANN401 - a java.time.Duration
        """Return a java.time.Duration."""
        return self._gateway.jvm.java.time.Duration.ofMillis(milliseconds)

    def topic_collection(self, topics: Sequence[str]) -> Any:  # noqa: ANN401 - a java.util.List
        """Return a java.util.List. py4j cannot pass a Python list to an overloaded method."""
        collection = self._gateway.jvm.java.util.ArrayList()
        for topic in topics:
            collection.add(topic)
        return collection

    @property
    def streams_classes(self) -> Any:  # noqa: ANN401 - a Java package
        """Return the package org.apache.kafka.streams."""
        return self._gateway.jvm.org.apache.kafka.streams


def _py4j_jar() -> Path:
    return next(pyspark_jars_folder().glob("py4j-*.jar"))


class _Consumer(Consuming):
    def __init__(self, java: JavaClients, joining: Joining, configuration: Mapping[str, str]) -> None:
        static = {} if joining.instance_id is None else {"group.instance.id": joining.instance_id}
        commits = {"auto.commit.interval.ms": "300", "auto.offset.reset": "earliest"}
        complete = java.consumer_configuration(joining, **commits, **static, **configuration)
        self._consumer = java.clients.consumer.KafkaConsumer(complete)
        if isinstance(joining.topics, Regex):
            self._consumer.subscribe(java.clients.consumer.SubscriptionPattern(joining.topics.pattern))
        else:
            self._consumer.subscribe(java.topic_collection(joining.topics))
        self._wait = java.duration(_POLL_MS)

    def poll(self) -> None:
        self._consumer.poll(self._wait)

    def generation(self) -> int | None:
        return int(self._consumer.groupMetadata().generationId())

    def close(self) -> None:
        self._consumer.close()


class _ShareConsumer(Consuming):
    def __init__(self, java: JavaClients, joining: Joining) -> None:
        assert not isinstance(joining.topics, Regex)
        self._consumer = java.clients.consumer.KafkaShareConsumer(java.consumer_configuration(joining))
        self._consumer.subscribe(java.topic_collection(joining.topics))
        self._wait = java.duration(_POLL_MS)

    def poll(self) -> None:
        self._consumer.poll(self._wait)

    def close(self) -> None:
        self._consumer.close()


class _Streams(Consuming):
    def __init__(self, java: JavaClients, joining: Joining, into: str, group_protocol: str) -> None:
        assert not isinstance(joining.topics, Regex)
        builder = java.streams_classes.StreamsBuilder()
        builder.stream(java.topic_collection(joining.topics)).to(into)
        self._streams = java.streams_classes.KafkaStreams(
            builder.build(), java.streams_properties(joining, group_protocol)
        )
        self._streams.start()
        options = java.streams_classes.CloseOptions
        # By default a member of the classic protocol stays until its session ends.
        leaving = getattr(java.streams_classes, "CloseOptions$GroupMembershipOperation").LEAVE_GROUP
        self._leaving = options.groupMembershipOperation(leaving)

    def poll(self) -> None:
        """Wait, because KafkaStreams polls by itself."""
        time.sleep(_POLL_MS / 1000)

    def close(self) -> None:
        self._streams.close(self._leaving)
