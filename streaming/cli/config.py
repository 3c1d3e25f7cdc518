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
    """Settings: a TOML file, every one of them also an environment variable."""


@config.command()
@config_option
def check(file: Path | None) -> None:
    """Check the settings and print them, secrets left out; or name everything that is wrong, at once."""
    try:
        settings = load_settings(file)
    except RemedyError as error:
        raise click.ClickException(f"the configuration has errors:\n{error}") from error
    for name in type(settings).model_fields:
        click.echo("\n".join(_toml_of(name, getattr(settings, name))))


def _toml_of(name: str, given: Section | Mapping[str, Section]) -> Iterator[str]:
    """One section, or each of those that are named by whoever writes the file."""
    if isinstance(given, Section):
        yield from _toml(name, given)
    elif given:
        yield from chain.from_iterable(_toml(f"{name}.{key}", section) for key, section in given.items())
    else:
        yield f"# Further clusters, each in a section of its own: [{name}.NAME]; there is none.\n"


def _toml(name: str, section: Section) -> Iterator[str]:
    """A section, then the sections in it; what is not set and has no default is a comment."""
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
