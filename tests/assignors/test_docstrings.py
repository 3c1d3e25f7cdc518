"""Runs the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import assignors

MODULES = [module.name for module in pkgutil.walk_packages(assignors.__path__, "assignors.")]


@pytest.mark.parametrize("name", ["assignors", *MODULES])
def test_the_examples_in_the_docstrings_are_correct(name: str):
    """A wrong example is worse than no example."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
