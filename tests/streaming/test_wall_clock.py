"""Tests of the boot time, which shows that the clock of the machine was set."""

from __future__ import annotations

import time

import pytest

from streaming.wall_clock import boot_time_ms


def test_the_boot_time_stays_the_same_while_time_passes() -> None:
    before_ms = boot_time_ms()
    time.sleep(0.2)
    assert abs(boot_time_ms() - before_ms) < 100


def test_the_boot_time_changes_by_the_same_amount_as_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    before_ms, time_ns = boot_time_ms(), time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: time_ns() + 3_600 * 10**9)
    assert boot_time_ms() - before_ms == pytest.approx(3_600_000, abs=100)
