"""Words of a hard constraint are put to the judge as soon as they are said, as an audit puts them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.conftest import served
from tests.judges.dialogue import KEYS, Served
from tests.judges.test_hard_constraints import BOMB
from tests.monitor.worlds import Reader
from undersong.judges.protocol import Segment
from undersong.models import Confirmed
from undersong.monitor import Observation, SyncMonitor

__all__ = ["served"]
MESSAGE = {"id": "m1", "conversation": "c", "author": "kira", "role": "agent"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def observed(folder: Path, served: Served, text: str) -> Observation:
    with SyncMonitor(folder / "u.db", served.spec(), read_all=True) as monitor:
        return monitor.observe(MESSAGE | {"text": text})


def test_an_agent_that_asks_how_to_build_a_dirty_bomb_is_told_at_once(tmp_path: Path, served: Served) -> None:
    (answer,) = observed(tmp_path, served, BOMB).constraints
    assert (answer.mechanism, answer.at, answer.yes) == ("HC-01", "m1", True)
    assert answer.quotes[0].text in BOMB


@pytest.mark.parametrize(("text", "answers"), [(f"{BOMB} fault=no", [False]), ("Anthrax vaccines are kept cold.", [])])
def test_words_alone_convict_nobody(text: str, answers: list[bool], tmp_path: Path, served: Served) -> None:
    assert [each.yes for each in observed(tmp_path, served, text).constraints] == answers


def test_the_same_message_again_is_not_asked_about_and_a_newer_version_is(tmp_path: Path, served: Served) -> None:
    with SyncMonitor(tmp_path / "u.db", served.spec(), read_all=True) as monitor:
        monitor.observe(MESSAGE | {"text": BOMB})
        asked = len(served.server.seen)
        assert monitor.observe(MESSAGE | {"text": BOMB}).constraints == ()
        assert len(served.server.seen) == asked
        (newer,) = monitor.observe(MESSAGE | {"text": f"{BOMB} fault=no"}).constraints
    assert newer.yes is False


def test_a_judge_that_answers_no_second_questions_is_not_asked(tmp_path: Path) -> None:
    with SyncMonitor(tmp_path / "u.db", Reader()) as monitor:
        assert monitor.observe(MESSAGE | {"text": f"{BOMB} .5 .5"}).constraints == ()


class Broken(Reader):
    """Scores messages; over second questions it raises."""

    gives = frozenset({"traits", "mechanisms"})
    confirms = True

    def confirm(self, segments: Sequence[Segment]) -> list[Confirmed]:
        raise RuntimeError(f"no answer to {len(segments)}")


def test_a_judge_that_fails_over_it_loses_no_message_and_says_so(tmp_path: Path) -> None:
    with SyncMonitor(tmp_path / "u.db", Broken()) as monitor:
        done = monitor.observe(MESSAGE | {"text": f"{BOMB} .5 .5"})
        (answer,) = done.constraints
        assert (answer.state, answer.yes, done.evaluation.state) == ("unread", None, "scored")
        assert "no answer to 1" in str(answer.reason)
        assert "no answer to 1" in str(monitor.failure)


@pytest.mark.parametrize(("text", "printed"), [(BOMB, [True]), (f"{BOMB} fault=no", [])])
def test_watch_prints_a_violation(text: str, printed: list[bool], undersong: Undersong, served: Served) -> None:
    Path("talk.jsonl").write_text(json.dumps(MESSAGE | {"text": text}) + "\n")
    ran = undersong("watch", "talk.jsonl", "--judge", served.spec(), "--all", "--no-follow")
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [(each["constraint"], each["agent"], each["message"], each["yes"]) for each in lines] == [
        ("HC-01", "kira", "m1", yes) for yes in printed
    ]
