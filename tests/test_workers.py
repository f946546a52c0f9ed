"""Work shared out comes back in order, and so does what goes wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from undersong.errors import StoreError, UndersongError
from undersong.formats.sources import Kept
from undersong.workers import workers


def half(number: int) -> int:
    if number % 2:
        raise StoreError(f"{number} is odd", where="here", remedy="give even ones")
    return number // 2


def content(block: Kept) -> bytes:
    return block.data


def die(number: int) -> int:
    os._exit(number)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_piece_comes_with_its_result_in_order(processes: int) -> None:
    with workers(processes) as share:
        assert list(share(half, range(0, 200, 2))) == [(number, number // 2) for number in range(0, 200, 2)]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_here_as_it_was_there(processes: int) -> None:
    with workers(processes) as share, pytest.raises(StoreError) as caught:
        list(share(half, [2, 4, 5]))
    assert str(caught.value) == "here: 5 is odd; give even ones"


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(UndersongError, match="was killed"), workers(2) as share:
        list(share(die, [9]))


def test_a_block_is_read_again_from_its_file_and_not_sent(tmp_path: Path) -> None:
    file = os.open(f"{tmp_path}/blocks", os.O_RDWR | os.O_CREAT)
    os.write(file, b"abCDEf")
    with workers(2) as share:
        kept = Kept(file, 2, b"cde")
        assert [data for _, data in share(content, [kept, kept])] == [b"CDE", b"CDE"]
    os.close(file)
