"""The permissions that the monitor uses, the values that each permission provides, and commands that grant them.

1. A permission is missing if a broker refuses a request that needs the permission. If no broker answers, the permission
   is unknown.
2. The permission to read `__consumer_offsets` is not needed with `source.kind = "admin-api"`.
3. A missing optional permission is a note. The monitor can run without an optional permission, but then some values are
   unknown.

`docs/SECURITY.md` contains a table of the same permissions. A test compares the table with this module.
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
class Permission:
    """An operation on a resource of Kafka.

    `needed_for` names the data that the monitor gets with the permission. `unknown` names the values that are unknown
    without the permission.
    """

    operation: str
    resource_type: str
    resource_name: str
    needed_for: str
    unknown: str
    is_optional: bool = False

    @property
    def text(self) -> str:
        """The permission in words, for example `DESCRIBE on all topics`."""
        if self.resource_type == "cluster":
            return f"{self.operation} on the cluster"
        if self.resource_name == EVERY:
            return f"{self.operation} on all {self.resource_type}s"
        return f"{self.operation} on the {self.resource_type} {self.resource_name}"


READ_LOG: Final = Permission("READ", "topic", OFFSETS_TOPIC, "groups and commits", "all groups and all commits")
DESCRIBE_TOPICS: Final = Permission(
    "DESCRIBE", "topic", EVERY, "partition counts and end offsets", "the lag of topics that the monitor cannot describe"
)
DESCRIBE_GROUPS: Final = Permission(
    "DESCRIBE",
    "group",
    EVERY,
    "the state and the committed offsets of each group",
    "rebalances in progress, deletions and some strategies, for groups that the monitor cannot describe",
)
DESCRIBE_CLUSTER: Final = Permission(
    "DESCRIBE", "cluster", "kafka-cluster", "the list of groups", "whether the list of groups is complete"
)
READ_TOPICS: Final = Permission(
    "READ",
    "topic",
    EVERY,
    "the exact lag of compacted topics and of topics with transactions",
    "the exact lag of groups that stop near the end of a compacted topic, or anywhere in a topic with transactions",
    is_optional=True,
)
CLUSTER_CONFIGS: Final = Permission(
    "DESCRIBE_CONFIGS",
    "cluster",
    "kafka-cluster",
    "offsets.retention.minutes",
    "the time when the committed offsets of inactive groups expire",
    is_optional=True,
)
TOPIC_CONFIGS: Final = Permission(
    "DESCRIBE_CONFIGS",
    "topic",
    EVERY,
    "retention.ms, retention.bytes and cleanup.policy",
    "the time until retention deletes unread records, for topics with few new records, and the lag of stopped groups"
    " after compaction",
    is_optional=True,
)
PERMISSIONS: Final = (
    READ_LOG,
    DESCRIBE_TOPICS,
    DESCRIBE_GROUPS,
    DESCRIBE_CLUSTER,
    READ_TOPICS,
    CLUSTER_CONFIGS,
    TOPIC_CONFIGS,
)

Permissions = Mapping[Permission, bool | Unanswered]
"""For each permission: True if the monitor has it, False if not, `Unanswered` if it is unknown."""

_ACL_OPERATIONS: Final = {"READ": "Read", "DESCRIBE": "Describe", "DESCRIBE_CONFIGS": "DescribeConfigs"}


def used_permissions(source_kind: str) -> Sequence[Permission]:
    """Return the permissions that the monitor uses with this source (rule 2)."""
    return [permission for permission in PERMISSIONS if permission != READ_LOG or source_kind != ADMIN_API_SOURCE]


def missing_permissions(permissions: Permissions) -> Sequence[Permission]:
    """Return the missing permissions (rule 1)."""
    return [permission for permission, answer in permissions.items() if answer is False]


def permission_findings(permissions: Permissions, kafka: KafkaSettings) -> Iterator[Finding]:
    """Return one finding for each permission (rules 1 and 3), and a KafkaUser for all missing permissions."""
    for permission, answer in permissions.items():
        point = f"permission {permission.text}"
        if isinstance(answer, Unanswered):
            yield not_checked(point, f"the brokers did not answer the request ({answer.reason})")
        elif answer:
            yield ok(point, f"granted; needed for {permission.needed_for}")
        else:
            finding = note if permission.is_optional else failed
            kind = "missing, but optional" if permission.is_optional else "missing"
            yield finding(point, f"{kind}. Unknown without it: {permission.unknown}", _remedy(permission, kafka))
    if missing := missing_permissions(permissions):
        text = "if Strimzi manages the Kafka user, add these entries to the KafkaUser instead of running kafka-acls"
        yield note("permissions in Strimzi", text, kafka_user(missing))


def kafka_user(missing: Iterable[Permission]) -> str:
    """Return the part of a Strimzi KafkaUser that grants the permissions, with one entry for each resource."""
    operations: dict[tuple[str, str], list[str]] = {}
    for permission in missing:
        operations.setdefault((permission.resource_type, permission.resource_name), []).append(
            _ACL_OPERATIONS[permission.operation]
        )
    lines = ["spec:", "  authorization:", "    type: simple", "    acls:"]
    for (kind, resource_name), allowed in operations.items():
        on = "{type: cluster}"
        if kind != "cluster":
            on = f'{{type: {kind}, name: "{resource_name}", patternType: literal}}'
        lines += [f"      - resource: {on}", f"        operations: [{', '.join(allowed)}]"]
    return "\n".join(lines)


def _remedy(permission: Permission, kafka: KafkaSettings) -> str:
    """Return the command that grants a permission.

    The file `admin.properties` in the command is the client configuration of an administrator.
    """
    resource = ["--cluster"]
    if permission.resource_type != "cluster":
        resource = [f"--{permission.resource_type}", permission.resource_name]
    administrator = [] if kafka.security.protocol == "PLAINTEXT" else ["--command-config", "admin.properties"]
    command = [
        *("kafka-acls", "--bootstrap-server", kafka.bootstrap_servers, *administrator),
        *("--add", "--allow-principal", _principal(kafka.security)),
        *("--operation", _ACL_OPERATIONS[permission.operation], *resource),
    ]
    if permission == READ_LOG:
        return f'{shlex.join(command)} (or set source.kind = "{ADMIN_API_SOURCE}", which provides less information)'
    return shlex.join(command)


def _principal(security: SecuritySettings) -> str:
    if (user := security.username or security.oauth_client_id) is not None:
        return f"User:{user}"  # with OAUTHBEARER, usually the client id
    # With mTLS, the configuration of the broker defines the principal that belongs to a certificate.
    return "User:ANONYMOUS" if security.certificate_file is None else "User:CN=NAME-IN-THE-CERTIFICATE"
