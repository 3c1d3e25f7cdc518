"""Texts that describe violations of rules. If a group breaks a rule, the monitor's pages show the texts."""

from __future__ import annotations

from collections.abc import Mapping

from assignors.fairness.invariants import Rule
from streaming.evaluation.assignment.drift import REPLAY_DIFFERS

RULE_WORDS: Mapping[str, tuple[str, str]] = {
    Rule.ASSIGNED_TWICE.value: ("two owners", "a partition has two owners, which both process its records"),
    Rule.NOT_SUBSCRIBED.value: ("not subscribed", "a member owns a partition, but does not subscribe to the topic"),
    Rule.UNASSIGNED.value: ("left out", "a partition of a subscribed topic has no owner"),
    Rule.UNKNOWN_PARTITION.value: ("no such partition", "a member owns a partition that does not exist"),
    Rule.UNKNOWN_MEMBER.value: ("no such member", "a partition is assigned to a client that is not a member"),
    Rule.MEMBER_MISSING.value: ("member left out", "a member has no assignment"),
    Rule.HANDED_OVER_EARLY.value: (
        "handed over early",
        "a partition has a new owner before the previous owner revoked it",
    ),
    Rule.UNBALANCED.value: ("unbalanced", "members have more or fewer partitions than the strategy allows"),
    REPLAY_DIFFERS: ("different result", "the leader's client library computes a different assignment"),
}
"""Maps the name of each rule to two descriptions of a violation: a short text and a sentence."""


def short_word(rule: str) -> str:
    """Return the short text for a violation of a rule.

    >>> short_word("assigned_twice"), short_word("rule_of_a_later_version")
    ('two owners', 'rule of a later version')
    """
    return RULE_WORDS.get(rule, (rule.replace("_", " "), ""))[0]


def in_a_sentence(rule: str) -> str:
    """Return the sentence that describes a violation of a rule."""
    return RULE_WORDS.get(rule, ("", rule.replace("_", " ")))[1]
