"""Read the partitions that a classic member claims when it joins, and the generation of this claim.

Rules:

1. With `sticky` (KIP-54), a member revokes all its partitions before it joins. It claims its previous partitions in the
   user data. kafka-python writes its own format, which Java leaders cannot read.
2. With any other strategy, a member claims the partitions in `ownedPartitions` (KIP-429). The generation of the claim
   is `generationId` (KIP-792), which exists since version 2 of the subscription.
3. A custom strategy can extend Java's `StickyAssignor`. If `ownedPartitions` is empty, and the user data contains
   partitions in the format of `sticky`, rule 1 applies. `range` and `roundrobin` never read claims, so rule 1 never
   applies to them.
4. If a `cooperative-sticky` member sends no `generationId`, its user data can contain the generation. Java 2.8.1 to 3.3
   and sarama write four bytes. librdkafka before 2.2 writes the format of `sticky`. A Java leader always reads the
   first four bytes as the generation. In the format of `sticky`, these bytes are the number of topics, so the leader
   reads a wrong generation.
5. A claim of an older generation is still a claim. A Java member loses its partitions when the coordinator removes it
   from the group, and then claims nothing. So a member with an old claim still has these partitions (KAFKA-14639).
   The generation only decides between two members that claim the same partition.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streaming.protocol.classic import Subscription
from streaming.protocol.consumer_protocol import (
    UNKNOWN_GENERATION,
    kafka_python_sticky_user_data,
    sticky_user_data,
)

_STICKY: Final = "sticky"
_COOPERATIVE: Final = "cooperative-sticky"
_WITHOUT_CLAIMS: Final = frozenset({"range", "roundrobin"})
_GENERATION_BYTES: Final = 4


class Claim(NamedTuple):
    """The claimed partitions, and the generation of the claim. None or -1: the claim has no generation."""

    partitions: tuple[tuple[str, int], ...]
    generation_id: int | None


def member_claim(subscription: Subscription, strategy: str | None, *, is_java_leader: bool = False) -> Claim:
    """Return the claim of a member. If `is_java_leader` is True, return what a Java leader reads (rules 1 and 4).

    >>> member_claim(Subscription(1, ("t",), bytes.fromhex("00000005"), (("t", 3),), -1, None), "cooperative-sticky")
    Claim(partitions=(('t', 3),), generation_id=5)
    """
    owned, generation_id, user_data = subscription.owned, subscription.generation_id, subscription.user_data
    if not user_data:
        return Claim(owned, generation_id)
    if strategy == _COOPERATIVE:
        is_sent = generation_id >= 0
        return Claim(owned, generation_id if is_sent else _cooperative_generation(user_data, is_java_leader))
    if not owned and strategy not in _WITHOUT_CLAIMS:
        in_own_form = None if is_java_leader else kafka_python_sticky_user_data(user_data)
        claim = Claim(*(in_own_form if in_own_form and in_own_form[0] else sticky_user_data(user_data)))
        if claim.partitions or strategy == _STICKY:
            return claim
    return Claim(owned, generation_id)


def _cooperative_generation(user_data: bytes, is_java_leader: bool) -> int | None:
    if len(user_data) == _GENERATION_BYTES or (is_java_leader and len(user_data) > _GENERATION_BYTES):
        return int.from_bytes(user_data[:_GENERATION_BYTES], "big", signed=True)
    return UNKNOWN_GENERATION if is_java_leader else sticky_user_data(user_data)[1]
