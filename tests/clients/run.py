"""`python -m tests.clients.run [PART OF A GROUP'S NAME ...]`: every client library under the eyes of one real monitor.

`make test-clients` runs it. It installs the libraries, lets the groups of `groups.py` go through every step of
`scenario.py` on a real broker, and compares after each step what the monitor shows with Kafka's answers, counted again.
Waits until they are equal, so no sample comes too early; what is still different at the end of the time fails the run.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.comparison import Compared, Difference
from tests.clients.groups import GroupPlan, named
from tests.clients.installing import install
from tests.clients.libraries import LIBRARIES
from tests.clients.observed import GroupShown, KafkaShows, Position, position, shown_now
from tests.clients.scenario import ALL_LEFT, STEPS, TOPIC_GREW, LiveGroup, Step
from tests.clients.stage import Stage, opened_stage, waves
from tests.end_to_end.monitor_process import MonitorProcess
from tests.end_to_end.what_kafka_says import WhatKafkaSays

_LIMIT_SECONDS = 3600.0
_EQUAL_SECONDS = 120.0
_PAUSE_SECONDS = 1.0
_OF_MEMBERS = {"METRICS__GRANULARITY": "member"}
_MISSING = Difference("the group", "shown", "not shown")


class _TimeIsUpError(Exception):
    """The run took longer than it may."""


@dataclass(frozen=True)
class _Last:
    """A group at the end of its last step: what Kafka answered, and the position of its last record."""

    kafka: KafkaShows
    at: Position | None


@dataclass(frozen=True)
class _Found:
    """What differs of a group, and what the next step is compared with; None where the monitor does not show it."""

    differences: list[Difference]
    last: _Last | None = None


@dataclass
class _Run:
    """Compares the groups of all waves, and keeps what differed."""

    stage: Stage
    monitor: MonitorProcess
    admin: WhatKafkaSays
    until: float
    steps: int = 0
    failures: list[str] = field(default_factory=list)
    _last: dict[str, _Last] = field(default_factory=dict)

    def after_step(self, groups: Sequence[LiveGroup], step: Step, wrong: Mapping[str, str]) -> None:
        """Wait until the monitor shows every group as Kafka's answers make it; keep what differs at the end."""
        began = time.monotonic()
        found = self._until_equal(groups, step)
        for group in groups:
            name = group.plan.name
            unsettled = [Difference("the group in Kafka", "settled", wrong[name])] if name in wrong else []
            for one in (*unsettled, *found[name].differences):
                self._fail(group.plan, step, one)
            if last := found[name].last:
                self._last[name] = last
        self.steps += len(groups)
        equal = sum(not found[group.plan.name].differences for group in groups)
        seconds = time.monotonic() - began
        report(f"  {step.name}: {equal} of {len(groups)} groups are shown as Kafka has them ({seconds:.0f} s)")
        if time.monotonic() > self.until:
            raise _TimeIsUpError

    def _fail(self, plan: GroupPlan, step: Step, one: Difference) -> None:
        libraries = " and ".join(dict.fromkeys(map(str, plan.libraries)))
        self.failures.append(f"{plan.name} ({libraries}, {plan.strategy}), {step.name}: {one}")
        report(f"  DIFFERS: {self.failures[-1]}")

    def _until_equal(self, groups: Sequence[LiveGroup], step: Step) -> dict[str, _Found]:
        found = {group.plan.name: _Found([_MISSING]) for group in groups}
        deadline = time.monotonic() + _EQUAL_SECONDS
        while left := [group for group in groups if found[group.plan.name].differences]:
            found |= self._compared_once(left, step)
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        return found

    def _compared_once(self, groups: Sequence[LiveGroup], step: Step) -> dict[str, _Found]:
        shown = shown_now(self.monitor, [group.plan.name for group in groups])
        kafka = KafkaShows.now(groups, self.stage, self.admin)
        return {
            name: self._compared(group, step, kafka[name], shown[name])
            for group in groups
            for name in [group.plan.name]
            if name in shown
        }

    def _compared(self, group: LiveGroup, step: Step, kafka: KafkaShows, shown: GroupShown) -> _Found:
        last = self._last.get(group.plan.name)
        compared = Compared(
            plan=group.plan,
            partitions=dict(group.partitions),
            grew=step is TOPIC_GREW,
            before=last.kafka if last else None,
            now=kafka,
            since=last.at if last else None,
            shown=shown,
        )
        return _Found(compared.differences(), _Last(kafka, position(shown.tables["group_generations"][-1])))


def main() -> None:
    """Run the groups whose name contains an argument, or all; ends with 1 if anything differs or was not run."""
    began = time.monotonic()
    missing = install(LIBRARIES, progress=report)
    wanted = [plan for plan in named(sys.argv[1:]) if not missing.keys() & set(plan.libraries)]
    with tempfile.TemporaryDirectory(prefix="clients-") as name, opened_stage(Path(name)) as stage:
        monitor = MonitorProcess(stage.bootstrap_servers, Path(name) / "monitor", _OF_MEMBERS).start()
        monitor.wait_until_ready()
        admin = WhatKafkaSays(stage.bootstrap_servers)
        run = _Run(stage, monitor, admin, began + _LIMIT_SECONDS)
        not_run = _run_waves(run, waves(wanted))
        admin.close()
        monitor.stop()
    for library, why in missing.items():
        report(f"not installed: {library}: {why}")
    for plan in not_run:
        report(f"not run in {_LIMIT_SECONDS / 60:g} minutes: {plan.name}")
    for failure in run.failures:
        report(f"differs: {failure}")
    minutes = (time.monotonic() - began) / 60
    report(
        f"{len(wanted) - len(not_run)} groups, {run.steps} comparisons, {len(run.failures)} failed, {minutes:.0f} min"
    )
    sys.exit(1 if run.failures or not_run or not wanted else 0)


def _run_waves(run: _Run, all_waves: Sequence[Sequence[GroupPlan]]) -> list[GroupPlan]:
    """Run one after the other; returns the groups that had no time."""
    for number, wave in enumerate(all_waves, start=1):
        report(f"wave {number} of {len(all_waves)}: {', '.join(plan.name for plan in wave)}")
        try:
            run.stage.live(wave, (*STEPS, ALL_LEFT), run.after_step)
        except _TimeIsUpError:
            return [plan for rest in all_waves[number - 1 :] for plan in rest]
        except Exception as error:  # noqa: BLE001 - what ends one wave says nothing about the others
            traceback.print_exc()
            run.failures.append(f"wave {number} was not finished: {type(error).__name__}: {error}")
    return []


def report(words: str) -> None:
    """Print a line at once."""
    print(f"{time.strftime('%H:%M:%S')} {words}", flush=True)  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
