"""`rebalance-monitor config check` prints the effective settings."""

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
from streaming.config.redaction import hide_secrets
from streaming.config.section import Section
from streaming.errors import RemedyError


@click.group()
def config() -> None:
    """Check the settings. You can set each setting in a TOML file or in an environment variable."""


@config.command()
@config_option
def check(file: Path | None) -> None:
    """Print the effective settings without secrets. If settings are invalid, print all errors."""
    try:
        settings = load_settings(file)
    except RemedyError as error:
        raise click.ClickException(f"the configuration has errors:\n{error}") from error
    for name in type(settings).model_fields:
        click.echo("\n".join(_sections_as_toml(name, getattr(settings, name))))


def _sections_as_toml(name: str, value: Section | Mapping[str, Section]) -> Iterator[str]:
    """Return the TOML lines of one section, or of all sections [clusters.NAME]."""
    if isinstance(value, Section):
        yield from _section_as_toml(name, value)
    elif value:
        yield from chain.from_iterable(_section_as_toml(f"{name}.{key}", section) for key, section in value.items())
    else:
        yield f"# Further clusters: one section [{name}.NAME] for each. None is configured.\n"


def _section_as_toml(name: str, section: Section) -> Iterator[str]:
    """Return the TOML lines of a section and of its subsections. A setting without a value becomes a comment line."""
    yield f"# {(type(section).__doc__ or '').strip()}\n[{name}]"
    subsections = {key: value for key, value in section if isinstance(value, Section)}
    for key, value in section:
        if key not in subsections:
            description = type(section).model_fields[key].description
            variable = f"{ENVIRONMENT_PREFIX}{name.replace('.', '__')}__{key}".upper()
            line = f"# {key} =" if value is None else f"{key} = {_value_as_toml(hide_secrets(value))}"
            yield f"# {description} ({variable})\n{line}"
    yield ""
    for key, value in subsections.items():
        yield from _section_as_toml(f"{name}.{key}", value)


def _value_as_toml(value: Any) -> str:  # noqa: ANN401 - the value of any setting
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value_as_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
