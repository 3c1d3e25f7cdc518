"""Load users' own strategies before the job starts. So the operator learns about a wrong name immediately."""

from __future__ import annotations

from assignors import AssignorFailedError
from streaming.custom.catalogue import Catalogue
from streaming.errors import STAYS, RemedyError


class AssignorSettingError(RemedyError):
    """A strategy named in the configuration cannot be loaded."""

    exit_code = STAYS


def users_references(configured: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return users' strategies, installed and configured, as (name, reference). Raises AssignorSettingError.

    The error has the last line of the failure that loading the strategy caused.
    """
    try:
        with Catalogue(configured) as catalogue:
            return tuple(catalogue.users_references().items())
    except AssignorFailedError as failure:
        raise AssignorSettingError(f"evaluation.assignors: {str(failure).splitlines()[-1]}") from None
