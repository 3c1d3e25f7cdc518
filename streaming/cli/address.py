"""Options for the address of a server. The same rules apply to the addresses in the settings (`[links]`)."""

from __future__ import annotations

import click
from pydantic import TypeAdapter, ValidationError

from streaming.config.links import Url

_URL: TypeAdapter[str] = TypeAdapter(Url)


class Address(click.ParamType[str]):
    """The type of an option whose value is an address. The error never contains the address (it can be a secret)."""

    name = "URL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without a slash at its end."""
        try:
            return _URL.validate_python(value or "://")  # an address in the settings can be empty, an option cannot
        except ValidationError as invalid:
            self.fail(invalid.errors()[0]["msg"].removeprefix("Value error, "), param, ctx)
