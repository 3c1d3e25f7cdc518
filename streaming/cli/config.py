"""`rebalance-monitor config check` prints the effective settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from streaming.cli.run import config_option
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.groups import GroupEntry
from streaming.config.load import Settings, load_settings
from streaming.config.secret_settings import hide_secrets
from streaming.config.section import Section
from streaming.errors import RemedyError
from streaming.http.access import read_access


@click.group()
def config() -> None:
    """Check the settings. Each setting can be in a TOML file or in an environment variable."""


@config.command()
@config_option
@click.option("--group", metavar="ID", help="Print only the limits of this group, and the source of each limit.")
def check(file: Path | None, group: str | None) -> None:
    """Print the effective settings, with secrets hidden.

    If the settings have errors, or if they name a file that the monitor cannot use, print the errors instead.
    """
    try:
        settings = load_settings(file)
        read_access(settings.metrics)
    except RemedyError as error:
        raise click.ClickException(f"the configuration has errors:\n{error}") from error
    if group is not None:
        click.echo("\n".join(_limits_of_group(settings, group)))
        return
    for name in type(settings).model_fields:
        click.echo("\n".join(_sections_as_toml(name, getattr(settings, name))))


def _limits_of_group(settings: Settings, group_id: str) -> Iterator[str]:
    limits_by_group = settings.limits_by_group()
    limits = limits_by_group.of(group_id)
    yield f"# Limits of group {group_id!r}"
    for name, value, entry in limits_by_group.sources(group_id):
        effective = getattr(limits, name)
        source = "default" if entry is None else f"[[groups]] entry {entry + 1}, match {settings.groups[entry].match!r}"
        source += "" if effective == value else "; raised to max_lag_seconds"
        yield f"{name} = {_value_as_toml(effective)}  # {source}"


def _sections_as_toml(name: str, value: Section | Mapping[str, Section] | Sequence[GroupEntry]) -> Iterator[str]:
    if isinstance(value, Section):
        yield from _section_as_toml(name, value)
    elif isinstance(value, Sequence):
        yield from _entries_as_toml(name, value)
    elif value:
        yield from chain.from_iterable(_section_as_toml(f"{name}.{key}", section) for key, section in value.items())
    else:
        yield (f"# Only the cluster in [kafka] is configured. For each further cluster, add a section [{name}.NAME].\n")


def _section_as_toml(name: str, section: Section) -> Iterator[str]:
    """Return the TOML lines of a section and of its subsections. An unset setting becomes a comment."""
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


def _entries_as_toml(name: str, entries: Sequence[GroupEntry]) -> Iterator[str]:
    """Return comments that describe the settings of an entry, and then the entries. Omit unset settings."""
    yield f"# {GroupEntry.__doc__} ({ENVIRONMENT_PREFIX}{name.upper()})"
    yield from (f"# {key}: {field.description}" for key, field in GroupEntry.model_fields.items())
    yield "" if entries else f"# No entry [[{name}]] is configured."
    for entry in entries:
        yield f"[[{name}]]"
        yield from (f"{key} = {_value_as_toml(hide_secrets(value))}" for key, value in entry if value is not None)


def _value_as_toml(value: Any) -> str:  # noqa: ANN401 - the value of any setting
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value_as_toml(key)} = {_value_as_toml(item)}" for key, item in value.items()) + "}"
    # JSON strings, numbers and lists are also valid TOML, except for DEL and some escape sequences.
    return "".join(one if one.isprintable() else _escape(one) for one in json.dumps(value, ensure_ascii=False))


def _escape(character: str) -> str:
    r"""Return the escape sequence of TOML for a character.

    >>> print(_escape("\x7f"), _escape("\U000e0001"))
    \u007f \U000e0001
    """
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
