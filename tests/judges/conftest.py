"""A judge server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judges.dialogue import Served


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()
