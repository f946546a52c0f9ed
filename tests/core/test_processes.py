"""Work that is shared out comes back in order, by every start method, and so does what goes wrong."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import pytest

from undersong.core.processes import shared_out
from undersong.errors import StoreError
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule


@pytest.fixture(params=["spawn", "forkserver"])
def method(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no server of processes")
    multiprocessing.set_start_method(request.param, force=True)
    yield request.param
    multiprocessing.set_start_method(None, force=True)


def divide(divisor: int, number: int) -> int:
    if number % divisor:
        raise StoreError(f"{number} is odd", where="here", remedy="give even ones")
    return number // divisor


def die(number: int) -> int:
    os._exit(number)


def hash_of(rule: PatternRule) -> tuple[str, int]:
    return f"{rule.hash} {rule.source}", os.getpid()


def test_the_results_come_in_the_order_of_the_items(method: str) -> None:
    with shared_out(3) as share:
        assert list(share(partial(divide, 2), range(0, 200, 2))) == list(range(100)), method


def test_one_process_works_item_by_item() -> None:
    with shared_out(1) as share:
        results = share(partial(divide, 2), iter([2, 4, 5]))
        assert [next(results), next(results)] == [1, 2]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_raised_here_as_it_was_there(processes: int) -> None:
    with shared_out(processes) as share, pytest.raises(StoreError) as caught:
        list(share(partial(divide, 2), [2, 4, 5]))
    assert str(caught.value) == "here: 5 is odd; give even ones"


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(ChildProcessError, match="was killed"), shared_out(2) as share:
        list(share(die, [9]))


def test_rules_go_to_other_processes() -> None:
    rules = all_rules()
    with shared_out(2) as share:
        results = list(share(hash_of, rules))
    assert [name for name, _ in results] == [f"{rule.hash} {rule.source}" for rule in rules]
    assert os.getpid() not in {process for _, process in results}


PARENT = """
import os, signal, time
from undersong.core.processes import shared_out
if __name__ == "__main__":
    with shared_out(2) as share:
        pids = set()
        for _ in share(time.sleep, [0.05] * 20):
            pass
        import multiprocessing
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="asks the system for processes by number")
def test_the_processes_end_with_one_that_is_killed() -> None:
    result = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, check=False, text=True, timeout=60)
    numbers = [int(word) for word in result.stdout.split()]
    assert len(numbers) == 2
    deadline = time.monotonic() + 30
    while any(map(is_running, numbers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, numbers))


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{number}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
