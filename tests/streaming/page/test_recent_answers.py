"""Tests of the answers that pages keep for some seconds."""

from __future__ import annotations

import doctest
from itertools import count

import streaming.page.recent_answers
from streaming.page.recent_answers import MAX_ANSWERS, RecentAnswers


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.recent_answers).failed == 0


def test_an_answer_is_read_again_only_when_its_time_is_over() -> None:
    """A page reloads every 15 seconds in many browsers at once. Each reload would read the tables."""
    times, reads = iter((0.0, 9.9, 10.0, 19.0)), count(1)
    answers = RecentAnswers[str, int](lambda: next(times))
    assert [answers.get("orders", 10.0, lambda: next(reads)) for _ in range(4)] == [1, 1, 2, 2]


def test_the_oldest_answer_is_dropped_first() -> None:
    """Somebody asks for many groups, one after the other. The memory of the monitor does not grow."""
    reads = count(1)
    answers = RecentAnswers[int, int](lambda: 0.0)
    for key in range(MAX_ANSWERS + 1):
        answers.get(key, 10.0, lambda: next(reads))
    assert answers.get(MAX_ANSWERS, 10.0, lambda: next(reads)) == MAX_ANSWERS + 1, "the newest is kept"
    assert answers.get(0, 10.0, lambda: next(reads)) == MAX_ANSWERS + 2, "the oldest is read again"
