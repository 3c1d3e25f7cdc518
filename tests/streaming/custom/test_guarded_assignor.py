"""Test that a user's strategy that fails or hangs is reported for its group and does not affect the next group."""

from __future__ import annotations

import io
import os
import pickle
import signal
import time
from contextlib import closing
from typing import TYPE_CHECKING

import psutil
import pytest

from assignors import BUILT_IN, AssignorFailedError
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from streaming.custom import guarded_assignor
from streaming.custom.child import serve
from streaming.custom.guarded_assignor import MAX_SLOW_FAILURES, RETRY_EVERY, FailureReason, GuardedAssignor
from streaming.errors import STAYS
from streaming.run.strategies import AssignorSettingError, users_references

if TYPE_CHECKING:
    from pathlib import Path

GROUP = GroupSpec((MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",))), {"t": 3})
SEVERAL_NAMES = GroupSpec((MemberSubscription("\ud83d", ("\U0001f600",)),), {"\U0001f600": 2})

STRATEGIES = '''
import os, subprocess, sys, time
from assignors import GroupAssignment
from assignors.range.range import RangeAssignor

class Good(RangeAssignor):
    name = "good"

class Moody(RangeAssignor):
    """Does what the rack of the first member names."""
    name = "moody"
    def assign(self, group):
        mood = group.members[0].rack
        if mood == "raise": raise RuntimeError("no mood")
        if mood == "hang":
            while True: pass
        if mood == "hang in C": sum(range(10**13))
        if mood == "swallow everything":
            while True:
                try:
                    while True: time.sleep(0.01)
                except BaseException: pass
        if mood == "leave a child behind":
            print("started", subprocess.Popen(["sleep", "60"]).pid, flush=True)
            while True: pass
        if mood == "exit": sys.exit(3)
        if mood == "die": os._exit(4)
        if mood == "print": print("x" * 1_000_000)
        if mood == "devour": return bytearray(3 << 30)
        if mood == "None": return None
        if mood == "text": return GroupAssignment({"A": (("t", "0"),)})
        if mood == "half": return GroupAssignment({"A": (("t", 0),), "B": ()})
        return super().assign(group)

class ByLag(RangeAssignor):
    """Gives all partitions to the member whose id is the total lag."""
    name = "by-lag"
    def assign(self, group):
        total = str(sum(group.lag_records.values()))
        ids = [member.member_id for member in group.members]
        return GroupAssignment({one: (("t", 0),) if one == total else () for one in ids})

def broken():
    raise ImportError("no such driver")
'''


@pytest.fixture
def strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a user's module that this process and the child process can import."""
    (tmp_path / "users_strategies.py").write_text(STRATEGIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "users_strategies"


def in_mood(mood: str) -> GroupSpec:
    first = MemberSubscription("A", ("t",), rack=mood)
    return GroupSpec((first, MemberSubscription("B", ("t",))), {"t": 3})


def failure_of(assignor: GuardedAssignor, group: GroupSpec) -> AssignorFailedError:
    with pytest.raises(AssignorFailedError) as failure:
        assignor.assign(group)
    return failure.value


def test_a_strategy_receives_the_lag_of_a_scenario(strategies: str):
    """Only a custom strategy reads the lag, so no golden vector covers it."""
    members = (MemberSubscription("7", ("t",)), MemberSubscription("8", ("t",)))
    with closing(GuardedAssignor(f"{strategies}:ByLag")) as guarded:
        answer = guarded.assign(GroupSpec(members, {"t": 1}, lag_records={("t", 0): 8}))
    assert answer == GroupAssignment({"7": (), "8": (("t", 0),)})


def test_a_working_strategy_returns_its_assignment(strategies: str):
    """The child process does not change the assignment, also with unusual names."""
    with closing(GuardedAssignor(f"{strategies}:Good")) as guarded:
        assert guarded.name == "good"
        assert guarded.assign(GROUP) == BUILT_IN["range"].assign(GROUP)
        assert guarded.assign(SEVERAL_NAMES) == BUILT_IN["range"].assign(SEVERAL_NAMES)


@pytest.mark.parametrize(
    ("mood", "reason", "message"),
    [
        ("raise", FailureReason.RAISED, "RuntimeError: no mood"),
        ("exit", FailureReason.DIED, "exit code 3"),
        ("die", FailureReason.DIED, "exit code 4"),
        ("devour", FailureReason.RAISED, "MemoryError"),
        ("None", FailureReason.RAISED, "assign returned NoneType, not GroupAssignment"),
        ("text", FailureReason.RAISED, "'A' has ('t', '0')"),
        ("half", FailureReason.UNLAWFUL, "t-1 is not assigned"),
    ],
)
def test_a_failure_of_a_strategy_is_reported_and_the_next_group_is_assigned(
    strategies: str, mood: str, reason: FailureReason, message: str
):
    """A failure for one group does not affect other groups."""
    with closing(GuardedAssignor(f"{strategies}:Moody")) as guarded:
        failure = failure_of(guarded, in_mood(mood))
        assert failure.reason == reason
        assert message in str(failure)
        assert isinstance(guarded.assign(GROUP), GroupAssignment)


@pytest.mark.parametrize("mood", ["hang", "hang in C", "swallow everything", "leave a child behind"])
def test_a_strategy_that_hangs_is_stopped_at_its_limit(strategies: str, mood: str):
    """Loops that catch every exception or never return from C code are also stopped."""
    with closing(GuardedAssignor(f"{strategies}:Moody", limit_seconds=0.3)) as guarded:
        failure = failure_of(guarded, in_mood(mood))
        assert failure.reason == FailureReason.TIMED_OUT
        assert "users_strategies.py" in str(failure), "the report names the place where it hung"
        assert isinstance(guarded.assign(GROUP), GroupAssignment)


def test_what_a_strategy_started_ends_with_it(strategies: str):
    """Otherwise one process would remain for each group that timed out."""
    with closing(GuardedAssignor(f"{strategies}:Moody", limit_seconds=0.3)) as guarded:
        detail = str(failure_of(guarded, in_mood("leave a child behind")))
    left_behind = int(detail.split("started ")[1].split(maxsplit=1)[0])
    for _ in range(100):
        if not psutil.pid_exists(left_behind) or psutil.Process(left_behind).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    pytest.fail(f"process {left_behind} still runs")


def test_the_output_of_a_strategy_is_not_part_of_its_answer(strategies: str):
    """A megabyte on standard output does not block the strategy."""
    with closing(GuardedAssignor(f"{strategies}:Moody")) as guarded:
        assert isinstance(guarded.assign(in_mood("print")), GroupAssignment)
        assert isinstance(guarded.assign(in_mood("print")), GroupAssignment)


def test_a_strategy_that_always_hangs_is_suspended(strategies: str):
    """Ten thousand groups with ten seconds each would take a day. After three timeouts only some groups are tried."""
    with closing(GuardedAssignor(f"{strategies}:Moody", limit_seconds=0.1)) as guarded:
        timeouts = [failure_of(guarded, in_mood("hang")).reason for _ in range(MAX_SLOW_FAILURES)]
        assert timeouts == [FailureReason.TIMED_OUT] * MAX_SLOW_FAILURES
        skipped = {failure_of(guarded, GROUP).reason for _ in range(RETRY_EVERY - 1)}
        assert skipped == {FailureReason.SUSPENDED}
        assert isinstance(guarded.assign(GROUP), GroupAssignment), "the hundredth group is tried"
        assert isinstance(guarded.assign(GROUP), GroupAssignment), "its success ends the suspension"


def test_a_strategy_that_cannot_be_loaded_is_suspended():
    """A load that hangs would delay each group by a minute."""
    with closing(GuardedAssignor("absent:Absent")) as guarded:
        reasons = [failure_of(guarded, GROUP).reason for _ in range(MAX_SLOW_FAILURES + 1)]
    assert reasons == [*[FailureReason.NOT_LOADED] * MAX_SLOW_FAILURES, FailureReason.SUSPENDED]


@pytest.mark.parametrize("reference", ["users_strategies:broken", "users_strategies:Absent", "absent:Absent", "x"])
@pytest.mark.usefixtures("strategies")
def test_a_strategy_that_cannot_be_loaded_is_reported(reference: str):
    """A typing error in the configuration is reported for each group and does not end the monitor."""
    with closing(GuardedAssignor(reference)) as guarded:
        failure = failure_of(guarded, GROUP)
        assert failure.reason == FailureReason.NOT_LOADED
        assert reference in str(failure)
        with pytest.raises(AssignorFailedError):
            _ = guarded.name


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("import time; time.sleep(1000)", "users_module:x: the import did not end within 0.3 s"),
        ("import os; os._exit(7)", "users_module:x: the import ended its process: exit code 7"),
        (
            "import sys; print('last\\nwords'); sys.exit(7)",
            "users_module:x: the import ended its process: exit code 7: last words",
        ),
        ("raise ValueError('two\\nlines')", "users_module:x: ValueError: two lines"),
    ],
)
def test_a_failed_import_is_one_line_with_the_reference(
    module: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """If the import hung, the text was empty, and `run` ended with an IndexError after 66 s without output."""
    (tmp_path / "users_module.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    if "sleep" in module:
        monkeypatch.setattr("streaming.custom.guarded_assignor.START_LIMIT_SECONDS", 0.3)
    with pytest.raises(AssignorFailedError) as failure:
        _ = GuardedAssignor("users_module:x").name
    assert str(failure.value) == message
    assert failure.value.reason == FailureReason.NOT_LOADED
    with pytest.raises(AssignorSettingError) as error:
        users_references(("users_module:x",))
    assert str(error.value) == f"evaluation.assignors: {message}"
    assert error.value.exit_code == STAYS


def test_a_child_that_the_timer_thread_has_reaped_is_a_failure_and_not_an_error_of_the_monitor():
    """The timer thread kills an overdue child and reaps it. At this moment, the wait of the other thread failed."""
    child = guarded_assignor._Child("assignors.range.range:RangeAssignor", 1.0)
    os.kill(child._process.pid, signal.SIGKILL)
    os.waitpid(child._process.pid, 0)  # the operating system does this before `returncode` is set
    child.is_overdue = True
    try:
        assert child.failure().reason == FailureReason.TIMED_OUT
    finally:
        child.end()


def test_closing_ends_the_process_and_the_next_group_starts_a_new_one(strategies: str):
    """A closed guard leaves no process."""
    guarded = GuardedAssignor(f"{strategies}:Good")
    assert isinstance(guarded.assign(GROUP), GroupAssignment)
    process = guarded._child._process
    guarded.close()
    assert process.returncode is not None
    assert isinstance(guarded.assign(GROUP), GroupAssignment)
    guarded.close()


@pytest.mark.parametrize("answer", [b"", b'{"assignm', b'{"assignment": {}}'])
def test_a_part_of_an_answer_means_that_the_process_ended(strategies: str, answer: bytes):
    """A process can be killed while it writes."""
    with closing(GuardedAssignor(f"{strategies}:Good")) as guarded:
        guarded.assign(GROUP)
        child = guarded._child
        with closing(child._answers):
            child._answers = io.BytesIO(answer)
            assert failure_of(guarded, GROUP).reason == FailureReason.DIED
        assert isinstance(guarded.assign(GROUP), GroupAssignment)


@pytest.mark.parametrize("kept", [0, 1, 10, -1])
def test_a_part_of_a_group_is_not_assigned(kept: int):
    """The parent can be killed while it writes."""
    request, answers = pickle.dumps(GROUP), io.BytesIO()
    serve(BUILT_IN["range"], io.BytesIO(request + request[:kept]), answers, 60)
    assert answers.getvalue().count(b"\n") == 1
