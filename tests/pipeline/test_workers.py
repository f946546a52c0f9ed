"""Work that is shared out comes back in order, and so does what goes wrong; a spill file returns what it was given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from undersong.errors import StoreError, UndersongError
from undersong.formats.spool import SpillFile
from undersong.pipeline.options import Options
from undersong.pipeline.scan_export.stream import ScanJob, workers
from undersong.routing.route import load_policy
from undersong.scan import load_book

JOB = ScanJob(Options(seed=2), load_book(), load_policy(), text=True, threads=False)


def divide(job: ScanJob, number: int) -> int:
    if number % job.options.seed:
        raise StoreError(f"{number} is odd", where="here", remedy="give even ones")
    return number // job.options.seed


def die(job: ScanJob, number: int) -> int:
    os._exit(number + job.options.seed)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_results_come_in_the_order_of_the_pieces(processes: int) -> None:
    with workers(processes, JOB) as share:
        assert list(share(divide, range(0, 200, 2))) == list(range(100))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_here_as_it_was_there(processes: int) -> None:
    with workers(processes, JOB) as share, pytest.raises(StoreError) as caught:
        list(share(divide, [2, 4, 5]))
    assert str(caught.value) == "here: 5 is odd; give even ones"


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(UndersongError, match="was killed"), workers(2, JOB) as share:
        list(share(die, [9]))


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
