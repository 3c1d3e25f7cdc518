"""Run the examples in the docstrings of the evaluated modules."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from streaming import evaluation, feedback, integrity

MODULES = [
    module.name
    for package in (evaluation, feedback, integrity)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name: str) -> None:
    """Readers try the example first."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
