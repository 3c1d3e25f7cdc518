"""Compares a real monitor with Kafka for groups of every client library.

`make test-clients` runs `python -m tests.clients.run [PART OF A GROUP'S NAME ...]`. It installs the libraries and runs
the groups of `groups.py` through every step of `scenario.py` on a real broker. After each step, it compares the
monitor's output with values computed from Kafka's responses. It waits until they are equal, because the monitor's next
sample can be late. A real Prometheus evaluates the alert rules with short delays. After each step, no alert may
fire for a group that has settled. Values that still differ after the time limit fail the run, and so do alerts.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dashboards.alerts.expressions import ALERTING
from tests.clients.comparison import Difference, GroupComparison
from tests.clients.groups import GroupPlan, select_plans
from tests.clients.installing import install
from tests.clients.libraries import LIBRARIES
from tests.clients.observed import KafkaState, MonitorOutput, Position, position, read_monitor
from tests.clients.scenario import ALL_LEFT, STEPS, TOPIC_GREW, LiveGroup, Step
from tests.clients.stage import Stage, open_stage, waves
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess
from tests.end_to_end.prometheus_process import RealPrometheus, rules_with_short_delays

_LIMIT_SECONDS = 3600.0
_EQUAL_SECONDS = 120.0
_PAUSE_SECONDS = 1.0
_SETTINGS = {"METRICS__GRANULARITY": "member", "EVALUATION__STORM_WINDOW_SECONDS": "15"}
"""With the default window, the steps of this run would be a rebalance storm in each group."""
_ALERTS_END_SECONDS = 60.0
_MISSING = Difference("the group", "shown", "not shown")


class _TimeLimitError(Exception):
    """The run has reached its time limit."""


@dataclass(frozen=True)
class _PreviousStep:
    """A group at the end of its previous step: Kafka's responses, and the position of its last record."""

    kafka: KafkaState
    at: Position | None


@dataclass(frozen=True)
class _ComparisonResult:
    """The differences of a group, and its state for the comparison of the next step.

    `last` is None if the monitor does not show the group.
    """

    differences: list[Difference]
    last: _PreviousStep | None = None


@dataclass
class _Run:
    """Compares the groups of all waves, and collects the failures."""

    stage: Stage
    monitor: MonitorProcess
    admin: KafkaReference
    prometheus: RealPrometheus
    until: float
    steps: int = 0
    failures: list[str] = field(default_factory=list)
    _last: dict[str, _PreviousStep] = field(default_factory=dict)

    def after_step(self, groups: Sequence[LiveGroup], step: Step, wrong: Mapping[str, str]) -> None:
        """Wait until the monitor shows every group as expected. Adds the remaining differences to the failures."""
        began = time.monotonic()
        found = self._until_equal(groups, step)
        for group in groups:
            name = group.plan.name
            problem = [Difference("the group in Kafka", "settled", wrong[name])] if name in wrong else []
            for one in (*problem, *found[name].differences):
                self._fail(group.plan, step, one)
            if last := found[name].last:
                self._last[name] = last
        plans = {group.plan.name: group.plan for group in groups}
        for group_id, alerts in self._until_quiet(groups).items():
            self._fail(plans[group_id], step, Difference("alerts of a healthy group", [], alerts))
        self.steps += len(groups)
        equal = sum(not found[group.plan.name].differences for group in groups)
        seconds = time.monotonic() - began
        report(f"  {step.name}: {equal} of {len(groups)} groups agree with Kafka ({seconds:.0f} s)")
        if time.monotonic() > self.until:
            raise _TimeLimitError

    def _fail(self, plan: GroupPlan, step: Step, one: Difference) -> None:
        libraries = " and ".join(dict.fromkeys(map(str, plan.libraries)))
        self.failures.append(f"{plan.name} ({libraries}, {plan.strategy}), {step.name}: {one}")
        report(f"  DIFFERS: {self.failures[-1]}")

    def _until_equal(self, groups: Sequence[LiveGroup], step: Step) -> dict[str, _ComparisonResult]:
        found = {group.plan.name: _ComparisonResult([_MISSING]) for group in groups}
        deadline = time.monotonic() + _EQUAL_SECONDS
        while left := [group for group in groups if found[group.plan.name].differences]:
            found |= self._compare_once(left, step)
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        return found

    def _until_quiet(self, groups: Sequence[LiveGroup]) -> dict[str, list[str]]:
        """Wait until no alert fires for these groups. Return the alerts that still fire at the end, by group id.

        A group that the rules do not see at all has the alert `no rule sees it`.
        """
        deadline = time.monotonic() + _ALERTS_END_SECONDS
        while firing := self._firing({group.plan.name for group in groups}):
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        return firing

    def _firing(self, group_ids: Collection[str]) -> dict[str, list[str]]:
        """Return the alerts of each group.

        The alerts about a drifting assignment are not returned. The comparison has checked the drift, and a library can
        cause it.
        """
        seen, drifting = (
            {one.labels["group"] for one in self.prometheus.query(query)}
            for query in (ALERTING, 'rebalance_monitor_assignment_verdict{verdict="drift"}')
        )
        firing = {group_id: ["no rule sees it"] for group_id in group_ids if group_id not in seen}
        for one in self.prometheus.query('ALERTS{alertstate="firing", severity!="info", group!=""}'):
            group_id, alert = one.labels["group"], one.labels["alertname"]
            is_checked = alert in {"KafkaAssignmentDrift", "KafkaAssignmentSkewed"} and group_id in drifting
            if group_id in group_ids and not is_checked:
                firing.setdefault(group_id, []).append(alert)
        return firing

    def _compare_once(self, groups: Sequence[LiveGroup], step: Step) -> dict[str, _ComparisonResult]:
        shown = read_monitor(self.monitor, [group.plan.name for group in groups])
        kafka = KafkaState.read(groups, self.stage, self.admin)
        return {
            name: self._compare(group, step, kafka[name], shown[name])
            for group in groups
            for name in [group.plan.name]
            if name in shown
        }

    def _compare(self, group: LiveGroup, step: Step, kafka: KafkaState, shown: MonitorOutput) -> _ComparisonResult:
        last = self._last.get(group.plan.name)
        compared = GroupComparison(
            plan=group.plan,
            partitions=dict(group.partitions),
            grew=step is TOPIC_GREW,
            before=last.kafka if last else None,
            now=kafka,
            since=last.at if last else None,
            shown=shown,
        )
        return _ComparisonResult(
            compared.differences(), _PreviousStep(kafka, position(shown.tables["group_generations"][-1]))
        )


def main() -> None:
    """Run the groups whose name contains an argument, or all groups.

    The exit code is 1 if a value differs or a group was not run.
    """
    began = time.monotonic()
    missing = install(LIBRARIES, progress=report)
    wanted = [plan for plan in select_plans(sys.argv[1:]) if not missing.keys() & set(plan.libraries)]
    with tempfile.TemporaryDirectory(prefix="clients-") as name, open_stage(Path(name)) as stage:
        monitor = MonitorProcess(stage.bootstrap_servers, Path(name) / "monitor", _SETTINGS).start()
        monitor.wait_until_ready()
        admin = KafkaReference(stage.bootstrap_servers)
        rules = rules_with_short_delays(Path(name) / "rules")
        with RealPrometheus(Path(name) / "prometheus", [f"127.0.0.1:{monitor.port}"], rule_files=rules) as prometheus:
            run = _Run(stage, monitor, admin, prometheus, began + _LIMIT_SECONDS)
            not_run = _run_waves(run, waves(wanted))
        admin.close()
        monitor.stop()
    for library, reason in missing.items():
        report(f"not installed: {library}: {reason}")
    for plan in not_run:
        report(f"not run within {_LIMIT_SECONDS / 60:g} minutes: {plan.name}")
    for failure in run.failures:
        report(f"differs: {failure}")
    minutes = (time.monotonic() - began) / 60
    report(
        f"{len(wanted) - len(not_run)} groups, {run.steps} comparisons, {len(run.failures)} failed, {minutes:.0f} min"
    )
    sys.exit(1 if run.failures or not_run or not wanted else 0)


def _run_waves(run: _Run, all_waves: Sequence[Sequence[GroupPlan]]) -> list[GroupPlan]:
    """Run all waves. Returns the groups that were not run within the time limit."""
    for number, wave in enumerate(all_waves, start=1):
        report(f"wave {number} of {len(all_waves)}: {', '.join(plan.name for plan in wave)}")
        try:
            run.stage.run_steps(wave, (*STEPS, ALL_LEFT), run.after_step)
        except _TimeLimitError:
            return [plan for rest in all_waves[number - 1 :] for plan in rest]
        except Exception as error:  # noqa: BLE001 - other waves can still succeed
            traceback.print_exc()
            run.failures.append(f"wave {number} was not finished: {type(error).__name__}: {error}")
    return []


def report(words: str) -> None:
    """Print a line with the time, without buffering."""
    print(f"{time.strftime('%H:%M:%S')} {words}", flush=True)  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
