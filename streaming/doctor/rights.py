"""The rights that the monitor uses, the values that each right provides, and the commands that grant rights.

1. A right is missing if a broker refuses a request that needs the right. If no broker answers, the right is unknown.
2. The right to read `__consumer_offsets` is not needed with `source.kind = "admin-api"`.
3. A missing optional right is a note. The monitor can run without an optional right, but then some values are unknown.

`docs/SECURITY.md` contains a table of the same rights. A test compares the table with this module.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streaming.config.security import SecuritySettings
from streaming.config.settings import ADMIN_API_SOURCE, KafkaSettings
from streaming.doctor.finding import Finding, failed, not_checked, note, ok
from streaming.events import OFFSETS_TOPIC
from streaming.group.listing import Unanswered

EVERY: Final = "*"


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on a resource of Kafka.

    `needed_for` names the data that the monitor gets with the right. `unknown` names the values that are unknown
    without the right.
    """

    operation: str
    resource_type: str
    resource_name: str
    needed_for: str
    unknown: str
    is_optional: bool = False

    @property
    def text(self) -> str:
        """The right in words, for example `DESCRIBE on all topics`."""
        if self.resource_type == "cluster":
            return f"{self.operation} on the cluster"
        if self.resource_name == EVERY:
            return f"{self.operation} on all {self.resource_type}s"
        return f"{self.operation} on the {self.resource_type} {self.resource_name}"


READ_LOG: Final = Right("READ", "topic", OFFSETS_TOPIC, "groups and commits", "all groups and all commits")
DESCRIBE_TOPICS: Final = Right(
    "DESCRIBE", "topic", EVERY, "partition counts and end offsets", "the lag of topics that the monitor cannot describe"
)
DESCRIBE_GROUPS: Final = Right(
    "DESCRIBE",
    "group",
    EVERY,
    "the state and the committed offsets of each group",
    "rebalances in progress, deletions and some strategies, for groups that the monitor cannot describe",
)
DESCRIBE_CLUSTER: Final = Right(
    "DESCRIBE", "cluster", "kafka-cluster", "the list of groups", "whether the list of groups is complete"
)
READ_TOPICS: Final = Right(
    "READ",
    "topic",
    EVERY,
    "the exact lag of compacted topics and of topics with transactions",
    "the exact lag of groups that stop near the end of a compacted topic, or anywhere in a topic with transactions",
    is_optional=True,
)
CLUSTER_CONFIGS: Final = Right(
    "DESCRIBE_CONFIGS",
    "cluster",
    "kafka-cluster",
    "offsets.retention.minutes",
    "the time when the committed offsets of inactive groups expire",
    is_optional=True,
)
TOPIC_CONFIGS: Final = Right(
    "DESCRIBE_CONFIGS",
    "topic",
    EVERY,
    "retention.ms and cleanup.policy",
    "the time until retention deletes unread records, for topics with few new records",
    is_optional=True,
)
RIGHTS: Final = (
    READ_LOG,
    DESCRIBE_TOPICS,
    DESCRIBE_GROUPS,
    DESCRIBE_CLUSTER,
    READ_TOPICS,
    CLUSTER_CONFIGS,
    TOPIC_CONFIGS,
)

Rights = Mapping[Right, bool | Unanswered]
"""For each right: True if the monitor has the right, or `Unanswered` if this is unknown, because no broker answered."""

_ACL_OPERATIONS: Final = {"READ": "Read", "DESCRIBE": "Describe", "DESCRIBE_CONFIGS": "DescribeConfigs"}


def used_rights(source_kind: str) -> Sequence[Right]:
    """Return the rights that the monitor uses with this source (rule 2)."""
    return [right for right in RIGHTS if right != READ_LOG or source_kind != ADMIN_API_SOURCE]


def missing_rights(rights: Rights) -> Sequence[Right]:
    """Return the missing rights (rule 1)."""
    return [right for right, answer in rights.items() if answer is False]


def right_findings(rights: Rights, kafka: KafkaSettings) -> Iterator[Finding]:
    """Return one finding for each right (rules 1 and 3), and a KafkaUser for all missing rights."""
    for right, answer in rights.items():
        point = f"right {right.text}"
        if isinstance(answer, Unanswered):
            yield not_checked(point, f"the brokers did not answer the request ({answer.reason})")
        elif answer:
            yield ok(point, f"granted; needed for {right.needed_for}")
        else:
            finding = note if right.is_optional else failed
            kind = "missing, but optional" if right.is_optional else "missing"
            yield finding(point, f"{kind}. Unknown without it: {right.unknown}", _remedy(right, kafka))
    if missing := missing_rights(rights):
        text = "if Strimzi manages the user, do not run kafka-acls, but add these entries to the KafkaUser"
        yield note("rights in Strimzi", text, kafka_user(missing))


def kafka_user(missing: Iterable[Right]) -> str:
    """Return the part of a Strimzi KafkaUser that grants the rights, with one entry for each resource."""
    operations: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        operations.setdefault((right.resource_type, right.resource_name), []).append(_ACL_OPERATIONS[right.operation])
    lines = [
        "spec:",
        "  authorization:",
        "    type: simple",
        "    acls:",
    ]
    for (kind, resource_name), allowed in operations.items():
        on = "{type: cluster}"
        if kind != "cluster":
            on = f'{{type: {kind}, name: "{resource_name}", patternType: literal}}'
        lines += [f"      - resource: {on}", f"        operations: [{', '.join(allowed)}]"]
    return "\n".join(lines)


def _remedy(right: Right, kafka: KafkaSettings) -> str:
    command = _acl_command(right, kafka)
    if right == READ_LOG:
        return f'{command} (or set source.kind = "{ADMIN_API_SOURCE}", which provides less information)'
    return command


def _acl_command(right: Right, kafka: KafkaSettings) -> str:
    """Return the command that grants a right.

    The file `admin.properties` in the command is the client configuration of an administrator.
    """
    resource = ["--cluster"] if right.resource_type == "cluster" else [f"--{right.resource_type}", right.resource_name]
    administrator = [] if kafka.security.protocol == "PLAINTEXT" else ["--command-config", "admin.properties"]
    command = [
        *("kafka-acls", "--bootstrap-server", kafka.bootstrap_servers, *administrator),
        *("--add", "--allow-principal", _principal(kafka.security)),
        *("--operation", _ACL_OPERATIONS[right.operation], *resource),
    ]
    return shlex.join(command)


def _principal(security: SecuritySettings) -> str:
    """Return the monitor's principal.

    With OAUTHBEARER, the user name is usually the client id. With mTLS, the configuration of the broker defines the
    principal that belongs to a certificate.
    """
    if (user := security.username or security.oauth_client_id) is not None:
        return f"User:{user}"
    return "User:ANONYMOUS" if security.certificate_file is None else "User:CN=NAME-IN-THE-CERTIFICATE"
