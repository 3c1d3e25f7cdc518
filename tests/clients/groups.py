"""Which groups there are: each library with each strategy, static members, and mixed groups of two libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.clients.libraries import LIBRARIES, Library

FIRST_MEMBERS = (1, 2, 3)
RETURNING_MEMBER = 2
KILLED_MEMBER = 3
LAST_MEMBER = 4
DYNAMIC_SESSION_MS = 10_000
STATIC_SESSION_MS = 25_000  # It must last while a static member is away.


@dataclass(frozen=True)
class GroupPlan:
    """One group: the strategy and the library of members 1 to 4, and whether the first three are static.

    The members of an upgraded application, or of a mixed one, use different libraries in one group.
    """

    name: str
    strategy: str
    libraries: tuple[Library, Library, Library, Library]
    static: bool = False

    @property
    def is_consumer_protocol(self) -> bool:
        """Whether its members use KIP-848."""
        return self.strategy.startswith("consumer-")

    @property
    def ignores_subscriptions(self) -> bool:
        """Whether a leader may deal topics to members that do not subscribe to them."""
        return any(library.ignores_subscriptions for library in self.libraries)

    @property
    def session_timeout_ms(self) -> int:
        """How long a member that sends nothing stays in the group."""
        return STATIC_SESSION_MS if self.static else DYNAMIC_SESSION_MS

    def partitions(self) -> dict[str, int]:
        """Its topics with their partition counts at the start."""
        return {f"{self.name}-a": 4, f"{self.name}-b": 3, f"{self.name}-c": 2}

    @property
    def growing_topic(self) -> str:
        """The topic that grows to `GROWN_PARTITIONS`."""
        return f"{self.name}-a"

    def topics_of(self, member: int) -> tuple[str, ...]:
        """What a member subscribes to: members 1 to 3 to a and b, the fourth to b and c if the library bears it."""
        are_the_same = any(self.strategy in library.only_same_topics for library in self.libraries)
        return tuple(f"{self.name}-{topic}" for topic in ("bc" if member == LAST_MEMBER and not are_the_same else "ab"))

    def client_id(self, member: int) -> str:
        """A member's client id; members may not be told apart by their member ids."""
        return f"{self.name}-{member}"

    def instance_id(self, member: int) -> str | None:
        """A member's `group.instance.id`: the ids sort behind the dynamic member's, as `zz` does."""
        return f"zz{member}" if self.static and member != LAST_MEMBER else None


GROWN_PARTITIONS = 6

_MIXED = (
    ("range", "sarama", "java"),
    ("range", "kafka-go", "aiokafka"),  # Java crashes where a member of kafka-go is in its group.
    ("range", "librdkafka", "kafka-python"),
    ("roundrobin", "franz-go", "aiokafka"),
    ("cooperative-sticky", "librdkafka", "java"),
    ("cooperative-sticky", "franz-go", "sarama"),
    ("consumer-uniform", "java", "librdkafka"),
)


def plans(libraries: Iterable[Library] = LIBRARIES) -> list[GroupPlan]:
    """Every group of these libraries."""
    known = list(libraries)
    return [*_homogeneous(known), *_mixed(known)]


def named(parts: Collection[str]) -> list[GroupPlan]:
    """Every group whose name contains one of these; all groups for none."""
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
    """Members in turn; the newest version of each library."""
    newest = {library.name: library for library in libraries}
    for strategy, first, second in _MIXED:
        if first in newest and second in newest:
            one, two = newest[first], newest[second]
            yield GroupPlan(f"{first}-and-{second}-{strategy}", strategy, (one, two, one, two))
