"""Broken laws in words: what a person reads first of a group whose assignment is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from assignors.fairness.invariants import Law
from streaming.evaluation.assignment.drift import REPLAY_DIFFERS

LAW_WORDS: Mapping[str, tuple[str, str]] = {
    Law.ASSIGNED_TWICE.value: ("two owners", "a partition has two owners, which both process its records"),
    Law.NOT_SUBSCRIBED.value: ("not subscribed", "a member owns a partition of a topic that it does not subscribe to"),
    Law.UNASSIGNED.value: ("left out", "the assignment leaves a partition out"),
    Law.UNKNOWN_PARTITION.value: ("no such partition", "a partition that does not exist is assigned"),
    Law.UNKNOWN_MEMBER.value: ("no such member", "a partition is assigned to a client that is no member"),
    Law.MEMBER_MISSING.value: ("member left out", "a member has no assignment"),
    Law.HANDED_OVER_EARLY.value: ("handed over early", "a partition has a new owner before the old one gave it up"),
    Law.UNBALANCED.value: ("unbalanced", "members hold more or fewer partitions than the strategy gives them"),
    Law.MOVED_NEEDLESSLY.value: ("moved needlessly", "a partition moved that could have stayed"),
    REPLAY_DIFFERS: ("other answer", "the leader computes another assignment than its own program does"),
}
"""By name of a law: a short word, and a sentence."""


def short_word(law: str) -> str:
    """A short word for a broken law.

    >>> short_word("assigned_twice"), short_word("a law of a later version")
    ('two owners', 'a law of a later version')
    """
    return LAW_WORDS.get(law, (law.replace("_", " "), ""))[0]


def in_a_sentence(law: str) -> str:
    """What it means that the law is broken."""
    return LAW_WORDS.get(law, ("", f"{law.replace('_', ' ')}"))[1]
