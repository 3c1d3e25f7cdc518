"""The examples in the docstrings of judgement are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from streaming import judgement

MODULES = [module.name for module in pkgutil.iter_modules(judgement.__path__, f"{judgement.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name: str) -> None:
    """An example is the first thing a reader tries."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
