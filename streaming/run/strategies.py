"""Users' own strategies, found and tried before the job starts: a name nobody can load is the operator's to mend."""

from __future__ import annotations

from assignors import AssignorFailedError
from streaming.custom.catalogue import Catalogue
from streaming.errors import STAYS, RemedyError


class AssignorSettingError(RemedyError):
    """A strategy named in the configuration cannot be loaded."""

    exit_code = STAYS


def users_references(configured: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return users' strategies, installed and configured, as (name, reference). Raises AssignorSettingError."""
    try:
        with Catalogue(configured) as catalogue:
            return tuple(catalogue.users_references().items())
    except AssignorFailedError as failure:
        raise AssignorSettingError(f"evaluation.assignors: {str(failure).splitlines()[-1]}") from None
