"""Test that users' strategies are found by entry point or by reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streaming.custom.loading import ENTRY_POINT_GROUP, AssignorLoadError, installed_references, load_assignor

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from assignors.range.range import RangeAssignor

class Mine(RangeAssignor):
    name = "mine"

mine = Mine()

def make():
    return Mine()

class Box:
    inner = Mine

nameless = object()
"""


def install(folder: Path, package: str, entry_points: str) -> None:
    """Write the metadata with entry points, as pip does."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{entry_points}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on the path with the user's module."""
    (tmp_path / "mine_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("attribute", ["Mine", "mine", "make", "Box.inner"])
def test_a_reference_names_an_object_a_class_or_a_function(attribute: str):
    """A class is instantiated, and a function is called."""
    assert load_assignor(f"mine_module:{attribute}").name == "mine"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine_module", "does not have the form module:attribute"),
        (":mine", "does not have the form module:attribute"),
        ("mine_module:absent", "AttributeError"),
        ("absent_module:mine", "ModuleNotFoundError"),
        ("mine_module:nameless", "TypeError"),
        ("math:pi", "TypeError"),
        ("assignors.model:GroupAssignment", "TypeError"),
        ("builtins:dict", "dict needs an attribute name and a method assign"),
    ],
)
def test_the_error_of_an_invalid_reference_names_the_reference_and_the_reason(reference: str, message: str):
    """Reports contain this message."""
    with pytest.raises(AssignorLoadError, match=message) as caught:
        load_assignor(reference)
    assert reference in str(caught.value)


def test_an_installed_package_offers_strategies_without_being_imported(folder: Path):
    """A broken package is an error only when its strategy is used."""
    install(folder, "theirs", "mine = mine_module:Mine\nbroken = absent_module:Absent")
    references = installed_references()
    assert references["mine"] == "mine_module:Mine"
    assert references["broken"] == "absent_module:Absent"


def test_if_two_packages_have_one_name_the_later_reference_in_order_counts(folder: Path):
    """The order of installation does not matter."""
    install(folder, "zzz", "mine = a_module:Mine")
    install(folder, "aaa", "mine = b_module:Mine")
    assert installed_references()["mine"] == "a_module:Mine"
