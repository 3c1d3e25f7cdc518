"""Turn SIGTERM and SIGINT into an event."""

from __future__ import annotations

import queue
import signal
import threading

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_event() -> threading.Event:
    """Return an event that SIGTERM or Ctrl-C sets. Call it in the main thread.

    A separate thread sets the event, and not the signal handler. A handler runs in the main thread, between any two
    steps of Python. The main thread can hold the lock of the event, for example in `wait` or `set`. Then `set` in the
    handler would wait for this lock forever. `SimpleQueue.put` can be called in such a handler.
    """
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    stop = threading.Event()

    def wait() -> None:
        received.get()
        stop.set()

    threading.Thread(target=wait, name="stop signal", daemon=True).start()
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, lambda number, _frame: received.put(number))
    return stop
