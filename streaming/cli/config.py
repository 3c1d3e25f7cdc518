"""`rebalance-monitor config check`: the settings as they would be used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import click

from streaming.cli.run import config_option
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import load_settings
from streaming.config.redaction import shown
from streaming.config.section import Section
from streaming.errors import RemedyError


@click.group()
def config() -> None:
    """Check the settings. Each one can be set in a TOML file or as an environment variable."""


@config.command()
@config_option
def check(file: Path | None) -> None:
    """Print the effective settings without secrets, or all errors in them."""
    try:
        settings = load_settings(file)
    except RemedyError as error:
        raise click.ClickException(f"the configuration has errors:\n{error}") from error
    for name in type(settings).model_fields:
        click.echo("\n".join(_toml_of(name, getattr(settings, name))))


def _toml_of(name: str, given: Section | Mapping[str, Section]) -> Iterator[str]:
    """One section, or all sections of a group whose names the user chooses."""
    if isinstance(given, Section):
        yield from _toml(name, given)
    elif given:
        yield from chain.from_iterable(_toml(f"{name}.{key}", section) for key, section in given.items())
    else:
        yield f"# Further clusters: one section [{name}.NAME] for each. None is configured.\n"


def _toml(name: str, section: Section) -> Iterator[str]:
    """A section, then the sections in it. A setting without a value and a default is a comment."""
    yield f"# {(type(section).__doc__ or '').strip()}\n[{name}]"
    inner = {key: value for key, value in section if isinstance(value, Section)}
    for key, value in section:
        if key not in inner:
            description = type(section).model_fields[key].description
            variable = f"{ENVIRONMENT_PREFIX}{name.replace('.', '__')}__{key}".upper()
            line = f"# {key} =" if value is None else f"{key} = {_toml_value(shown(value))}"
            yield f"# {description} ({variable})\n{line}"
    yield ""
    for key, value in inner.items():
        yield from _toml(f"{name}.{key}", value)


def _toml_value(value: Any) -> str:  # noqa: ANN401 - any value a setting can have
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
