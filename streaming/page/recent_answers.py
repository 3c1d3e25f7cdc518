"""Caches what pages read from tables, and limits how many requests read tables at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

MAX_ANSWERS: Final = 64

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


class RecentAnswers(Generic[Key, Answer]):
    """A cache with the last answer for each key, and with at most MAX_ANSWERS keys.

    All threads of the port use one object. Two threads can read the answer for the same key from the tables at the same
    time. `monotonic_seconds` is a clock that never goes backwards.
    """

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._answers: OrderedDict[Key, tuple[float, Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Key) -> Answer | None:
        """Return the stored answer, or None if it is missing or no longer valid."""
        return self._valid(key, self._monotonic_seconds())

    def get(self, key: Key, valid_seconds: float, read: Callable[[], Answer]) -> Answer:
        """Return the stored answer if it is still valid. Otherwise, read the answer and store it for `valid_seconds`.

        >>> answers = RecentAnswers[str, int](lambda: 0.0)
        >>> answers.get("orders", 10.0, lambda: 1), answers.get("orders", 10.0, lambda: 2)
        (1, 1)
        """
        now_seconds = self._monotonic_seconds()
        known = self._valid(key, now_seconds)
        if known is not None:
            return known
        answer = read()
        with self._lock:
            self._answers[key] = now_seconds + valid_seconds, answer
            self._answers.move_to_end(key)
            while len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
        return answer

    def _valid(self, key: Key, now_seconds: float) -> Answer | None:
        with self._lock:
            kept = self._answers.get(key)
        return kept[1] if kept is not None and now_seconds < kept[0] else None


class TooManyReadsError(Exception):
    """Error: too many requests read the tables or wait to read them."""


class ReadLimit:
    """Allows `at_once` requests to read tables at the same time, and up to `waiting` other requests to wait.

    Without a limit, slow reads could use all memory, and could block all other responses (`http/server.py`, rule 4).
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._reading = threading.Semaphore(at_once)
        self._places = threading.Semaphore(at_once + waiting)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Wait until the caller may read tables in the `with` block.

        Raises TooManyReadsError if `waiting` requests already wait.
        """
        if not self._places.acquire(blocking=False):
            raise TooManyReadsError
        try:
            with self._reading:
                yield
        finally:
            self._places.release()
