"""Test the example in CUSTOM.md as a user would use it: as a module that is named by reference and guarded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import assignors
from assignors.fairness.invariants import violations
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from streaming.custom import ENTRY_POINT_GROUP, GuardedAssignor, load_assignor

CUSTOM_MD = Path(assignors.__file__).with_name("CUSTOM.md")
LAGS = {("t", 0): 900, ("t", 1): 500, ("t", 2): 400}


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save the document's code as a module and return the reference in the document."""
    code = re.findall(r"```python\n(.*?)```", CUSTOM_MD.read_text(), re.DOTALL)
    assert len(code) == 1
    (tmp_path / "lag_weighted.py").write_text(code[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    return "lag_weighted:LagWeightedAssignor"


def test_the_worked_example_shares_the_backlog(example: str):
    """Range would give member A the two partitions with the largest lag. By lag A gets one, and B gets the others."""
    members = (MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",)))
    group = GroupSpec(members, {"t": 4}, lag_records=LAGS)
    with GuardedAssignor(example) as guarded:
        answer = guarded.try_assign(group)
    assert isinstance(answer, GroupAssignment)
    assert answer.members == {"A": (("t", 0), ("t", 3)), "B": (("t", 1), ("t", 2))}


def test_the_worked_example_violates_no_rule_with_different_subscriptions(example: str):
    """The lag is unknown, one topic does not exist, and one member has no subscription."""
    members = tuple(MemberSubscription(f"m{number}", ("t", "u", "absent")[:number]) for number in range(4))
    group = GroupSpec(members, {"t": 5, "u": 3})
    assert violations(group, load_assignor(example).assign(group)) == []


def test_the_document_names_the_right_entry_point_group():
    """With a misspelled group the monitor would not find the strategy."""
    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in CUSTOM_MD.read_text()
