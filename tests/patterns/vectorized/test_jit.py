"""Machine code is left out where the user says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from undersong.patterns.vectorized import jit


@pytest.fixture(autouse=True)
def asked_again() -> Iterator[None]:
    """The answer is kept within a run."""
    jit.installed.cache_clear()
    yield
    jit.installed.cache_clear()


@pytest.mark.parametrize(("setting", "used"), [("1", False), ("0", True), ("", True)])
def test_it_is_used_unless_switched_off(monkeypatch: pytest.MonkeyPatch, setting: str, used: bool) -> None:
    monkeypatch.setenv("UNDERSONG_PLAIN", setting)
    assert jit.installed() is used
    assert jit.machine(jit.ENOUGH) is used
    assert not jit.machine(jit.ENOUGH - 1)
