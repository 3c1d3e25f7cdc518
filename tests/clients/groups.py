"""The groups to run: each library with each strategy, with static members, and mixed groups of two libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.clients.libraries import LIBRARIES, Library

FIRST_MEMBERS = (1, 2, 3)
RETURNING_MEMBER = 2
KILLED_MEMBER = 3
LAST_MEMBER = 4
DYNAMIC_SESSION_MS = 10_000
STATIC_SESSION_MS = 25_000  # longer than the absence of a static member


@dataclass(frozen=True)
class GroupPlan:
    """The plan of one group: its strategy, and the libraries of members 1 to 4. `static`: members 1 to 3 are static.

    In a mixed group, as during the upgrade of an application, the members use different libraries.
    """

    name: str
    strategy: str
    libraries: tuple[Library, Library, Library, Library]
    static: bool = False

    @property
    def is_consumer_protocol(self) -> bool:
        """Return whether the members use KIP-848."""
        return self.strategy.startswith("consumer-")

    @property
    def ignores_subscriptions(self) -> bool:
        """Return whether a leader can assign topics to members that do not subscribe to them."""
        return any(library.ignores_subscriptions for library in self.libraries)

    @property
    def session_timeout_ms(self) -> int:
        """Return the session timeout of the members."""
        return STATIC_SESSION_MS if self.static else DYNAMIC_SESSION_MS

    def partitions(self) -> dict[str, int]:
        """Return the group's topics with their partition counts at the start."""
        return {f"{self.name}-a": 4, f"{self.name}-b": 3, f"{self.name}-c": 2}

    @property
    def growing_topic(self) -> str:
        """Return the topic that grows to `GROWN_PARTITIONS`."""
        return f"{self.name}-a"

    def topics_of(self, member: int) -> tuple[str, ...]:
        """Return the topics of a member: a and b for members 1 to 3; b and c for member 4, if the library allows it."""
        are_the_same = any(self.strategy in library.only_same_topics for library in self.libraries)
        return tuple(f"{self.name}-{topic}" for topic in ("bc" if member == LAST_MEMBER and not are_the_same else "ab"))

    def client_id(self, member: int) -> str:
        """Return the unique client id of a member. The test identifies members by client id, not by member id."""
        return f"{self.name}-{member}"

    def instance_id(self, member: int) -> str | None:
        """Return the `group.instance.id` of a member. It sorts after the member id of the dynamic member."""
        return f"zz{member}" if self.static and member != LAST_MEMBER else None


GROWN_PARTITIONS = 6

_MIXED = (
    ("range", "sarama", "java"),
    ("range", "kafka-go", "aiokafka"),  # Java crashes if a member of kafka-go is in its group.
    ("range", "librdkafka", "kafka-python"),
    ("roundrobin", "franz-go", "aiokafka"),
    ("cooperative-sticky", "librdkafka", "java"),
    ("cooperative-sticky", "franz-go", "sarama"),
    ("consumer-uniform", "java", "librdkafka"),
)


def plans(libraries: Iterable[Library] = LIBRARIES) -> list[GroupPlan]:
    """Return the plans of all groups of these libraries."""
    known = list(libraries)
    return [*_homogeneous(known), *_mixed(known)]


def select_plans(parts: Collection[str]) -> list[GroupPlan]:
    """Return the plans of all groups whose name contains one of `parts`. Returns all plans if `parts` is empty."""
    return [plan for plan in plans() if not parts or any(part in plan.name for part in parts)]


def _homogeneous(libraries: Sequence[Library]) -> Iterator[GroupPlan]:
    for library in libraries:
        name = f"{library.name}-{library.version}"
        four = (library, library, library, library)
        for strategy in library.strategies:
            yield GroupPlan(f"{name}-{strategy}", strategy, four)
            if library.supports_static:
                yield GroupPlan(f"{name}-{strategy}-static", strategy, four, static=True)


def _mixed(libraries: Sequence[Library]) -> Iterator[GroupPlan]:
    """Yield groups whose members alternate between the newest versions of two libraries."""
    newest = {library.name: library for library in libraries}
    for strategy, first, second in _MIXED:
        if first in newest and second in newest:
            one, two = newest[first], newest[second]
            yield GroupPlan(f"{first}-and-{second}-{strategy}", strategy, (one, two, one, two))
