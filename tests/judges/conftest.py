"""A judge server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # the server needs an optional package
    from tests.judges.dialogue import Served


@pytest.fixture
def served() -> Iterator[Served]:
    from tests.judges.dialogue import Served

    served = Served()
    yield served
    served.close()
