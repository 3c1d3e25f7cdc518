"""Broken laws in words: what a person reads first of a group whose assignment is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from assignors.fairness.invariants import Rule
from streaming.evaluation.assignment.drift import REPLAY_DIFFERS

RULE_WORDS: Mapping[str, tuple[str, str]] = {
    Rule.ASSIGNED_TWICE.value: ("two owners", "a partition has two owners, which both process its records"),
    Rule.NOT_SUBSCRIBED.value: ("not subscribed", "a member owns a partition of a topic that it does not subscribe to"),
    Rule.UNASSIGNED.value: ("left out", "the assignment leaves a partition out"),
    Rule.UNKNOWN_PARTITION.value: ("no such partition", "a partition that does not exist is assigned"),
    Rule.UNKNOWN_MEMBER.value: ("no such member", "a partition is assigned to a client that is no member"),
    Rule.MEMBER_MISSING.value: ("member left out", "a member has no assignment"),
    Rule.HANDED_OVER_EARLY.value: ("handed over early", "a partition has a new owner before the old one gave it up"),
    Rule.UNBALANCED.value: ("unbalanced", "members hold more or fewer partitions than the strategy gives them"),
    Rule.MOVED_NEEDLESSLY.value: ("moved needlessly", "a partition moved that could have stayed"),
    REPLAY_DIFFERS: ("other answer", "the leader computes another assignment than its own program does"),
}
"""By name of a law: a short word, and a sentence."""


def short_word(rule: str) -> str:
    """A short word for a broken law.

    >>> short_word("assigned_twice"), short_word("a law of a later version")
    ('two owners', 'a law of a later version')
    """
    return RULE_WORDS.get(rule, (rule.replace("_", " "), ""))[0]


def in_a_sentence(rule: str) -> str:
    """What it means that the law is broken."""
    return RULE_WORDS.get(rule, ("", f"{rule.replace('_', ' ')}"))[1]
