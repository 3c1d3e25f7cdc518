"""Test the catalogue, which finds built-in and users' strategies by name."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from assignors import BUILT_IN, AssignorFailedError, UnknownAssignorError
from assignors.model import GroupSpec, MemberSubscription
from streaming.custom.catalogue import Catalogue
from streaming.custom.loading import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from pathlib import Path

GROUP = GroupSpec((MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",))), {"t": 3})
MODULE = """
from assignors import GroupAssignment
from assignors.range.range import RangeAssignor
from assignors.roundrobin import RoundRobinAssignor

class Theirs(RoundRobinAssignor):
    name = "theirs"

class Pretender(RoundRobinAssignor):
    name = "range"

class Lazy:
    name = "lazy"
    def assign(self, group):
        return GroupAssignment({member.member_id: () for member in group.members})
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with strategies. One of them has the name of a built-in strategy."""
    (tmp_path / "their_strategies.py").write_text(MODULE)
    metadata = tmp_path / "theirs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    offers = "theirs = their_strategies:Theirs\nrange = their_strategies:Pretender\nlazy = their_strategies:Lazy\n"
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{offers}")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_installed_strategies_come_after_the_built_in_ones():
    """A user only has to install a package."""
    with closing(Catalogue()) as catalogue:
        assert catalogue.names()[: len(BUILT_IN)] == list(BUILT_IN)
        assert {"theirs", "lazy"} <= set(catalogue.names())
        assert catalogue.assignor("theirs").assign(GROUP) == BUILT_IN["roundrobin"].assign(GROUP)


@pytest.mark.usefixtures("installed")
def test_a_built_in_name_always_means_the_built_in():
    """The meaning of `range` does not depend on installed packages or on the command line."""
    with closing(Catalogue(["their_strategies:Pretender"])) as catalogue:
        assert catalogue.assignor("range") is BUILT_IN["range"]


@pytest.mark.usefixtures("installed")
def test_the_error_of_a_strategy_that_violates_a_rule_names_the_violation():
    """The error names the rule and the partition."""
    with (
        closing(Catalogue()) as catalogue,
        pytest.raises(AssignorFailedError, match="lazy unlawful: t-0 is not assigned"),
    ):
        catalogue.assignor("lazy").assign(GROUP)


@pytest.mark.usefixtures("installed")
def test_an_unknown_name_is_refused_with_the_known_names():
    """The message helps to correct a typing error."""
    with (
        closing(Catalogue()) as catalogue,
        pytest.raises(UnknownAssignorError, match=r"'thiers': the assignors are range.*theirs"),
    ):
        catalogue.assignor("thiers")
