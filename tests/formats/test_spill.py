"""A spill file returns what it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from undersong.formats.spool import SpillFile


def test_a_spill_file_returns_what_it_was_given_in_any_order() -> None:
    texts = [b"%d!" % number for number in range(50)]
    with SpillFile() as spill:
        places = [spill.put(text) for text in texts]
        assert [spill.get(*place) for place in reversed(places)] == texts[::-1]
        assert spill.get(*spill.put(b"more")) == b"more"


def test_what_is_spilled_vanishes_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with SpillFile() as spill:
        spill.put(b"text")
    assert not list(tmp_path.iterdir())
