"""Work that is shared out comes back in order, and so does what goes wrong; bytes wait for any process."""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path

import pytest

from undersong.errors import InputError, StoreError, UndersongError
from undersong.formats.sources import Extent
from undersong.formats.spill import SpillFile, SpillLocation
from undersong.pipeline.scan_export.stream import workers


def half(number: int) -> int:
    if number % 2:
        raise StoreError(f"{number} is odd", where="here", remedy="give even ones")
    return number // 2


def die(number: int) -> int:
    os._exit(number)


def put_text(waiting: SpillFile, text: bytes) -> SpillLocation:
    return waiting.put(text, b"!")


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_piece_comes_with_its_result_in_order(processes: int) -> None:
    with workers(processes) as share:
        assert list(share(half, range(0, 200, 2))) == [(number, number // 2) for number in range(0, 200, 2)]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_result_that_is_not_needed_yet_is_waited_for(processes: int) -> None:
    with workers(processes) as share:
        first, second = share.later(half, 8), share.later(half, 6)
        assert (second(), first()) == (3, 4)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_here_as_it_was_there(processes: int) -> None:
    with workers(processes) as share, pytest.raises(StoreError) as caught:
        list(share(half, [2, 4, 5]))
    assert str(caught.value) == "here: 5 is odd; give even ones"


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(UndersongError, match="was killed"), workers(2) as share:
        list(share(die, [9]))


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_process_keeps_is_read_in_another(processes: int) -> None:
    texts = [b"%d" % number for number in range(50)]
    with SpillFile() as waiting, workers(processes) as share:
        places = [place for _, place in share(partial(put_text, waiting), texts)]
        assert [waiting.get(place) for place in reversed(places)] == [text + b"!" for text in reversed(texts)]
        copy = pickle.loads(pickle.dumps(waiting))
        assert copy.get(places[3]) == b"3!"


def test_what_waits_vanishes_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with SpillFile() as waiting:
        waiting.put(b"text")
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_a_file_that_changes_while_it_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"0123456789")
    status = path.stat()
    extent = Extent(str(path), (status.st_dev, status.st_ino), 2, 5)
    assert extent.read() == b"23456"
    with pytest.raises(InputError, match="changed while it was read"):
        extent._replace(size=50).read()
    with pytest.raises(InputError, match="changed while it was read"):
        extent._replace(file=(0, 0)).read()
    path.unlink()
    with pytest.raises(InputError, match="cannot be read to its end"):
        extent.read()
