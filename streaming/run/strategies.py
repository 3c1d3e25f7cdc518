"""At the start of the monitor, load the strategies of users. If a strategy cannot be loaded, the start fails."""

from __future__ import annotations

from contextlib import closing

from assignors import AssignorFailedError
from streaming.custom.catalogue import Catalogue
from streaming.errors import STAYS, RemedyError


class AssignorSettingError(RemedyError):
    """Error: the configuration contains a strategy that cannot be loaded."""

    exit_code = STAYS


def users_references(configured: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the strategies that users installed or configured, as pairs (name, reference).

    Raises AssignorSettingError if a strategy cannot be loaded.
    """
    try:
        with closing(Catalogue(configured)) as catalogue:
            return tuple(catalogue.users_references().items())
    except AssignorFailedError as failure:
        raise AssignorSettingError(f"evaluation.assignors: {failure}") from None
