"""Shared fixtures of the tests of `streaming`. One real broker starts when the first test requests it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.embedded import EmbeddedBroker

# A test that is slow on a busy machine, or in the first call into Arrow, is not wrong.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Return the shared broker. Tests use their own topic names and group ids."""
    from streaming.embedded import EmbeddedBroker  # noqa: PLC0415 - the tests of the pure core must not load a Kafka client

    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running
