"""`rebalance-monitor config check`: the settings as they would be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from streaming.cli.run import config_option
from streaming.config.load import ENVIRONMENT_PREFIX, load_settings, shown
from streaming.config.settings import Section
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
    click.echo("\n".join(_toml(settings)))


def _toml(settings: Any) -> Iterator[str]:  # noqa: ANN401 - the settings class is read by its fields
    for name in type(settings).model_fields:
        section: Section = getattr(settings, name)
        yield f"# {(type(section).__doc__ or '').strip()}\n[{name}]"
        for key, value in shown(section.model_dump()).items():
            description = type(section).model_fields[key].description
            variable = f"{ENVIRONMENT_PREFIX}{name}__{key}".upper()
            yield f"# {description} ({variable})\n{key} = {_toml_value(value)}"
        yield ""


def _toml_value(value: Any) -> str:  # noqa: ANN401 - any value a setting can have
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
