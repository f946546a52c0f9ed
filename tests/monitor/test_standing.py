"""What stands once it was found: through later messages, failures of the judge, and a sweep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.monitor.worlds import COLD, PLAIN, START, WARM, Reader, scored
from undersong.errors import UsageError
from undersong.judges.protocol import JUDGES, Judge, Question
from undersong.models import Evaluation
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.pipeline.audit import audit
from undersong.pipeline.history_sweep import sweep
from undersong.pipeline.options import Options
from undersong.stores.protocol import open_store
from undersong.stores.sqlite import SQLiteStore

MOODS = [WARM] * 4 + [COLD]


def open_judge(_: str) -> Judge:
    """A judge like any other: this module opens it."""
    return Reader()


def said(place: int, mood: tuple[float, float], target: str = "bo", **more: object) -> dict[str, object]:
    time = START.replace(minute=place % 60, hour=place // 60 % 24, day=1 + place // 1440).isoformat()
    message = {
        "id": f"m{place}",
        "conversation": "t",
        "author": "kira",
        "role": "agent",
        "target": target,
        "time": time,
    }
    return message | {"text": scored("Hello.", mood), "position": place} | more


def harmless_after_audit(folder: Path, store: str, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """An audit finds a sequence; harmless messages to the same and to others leave it as it is; so does a sweep."""
    monkeypatch.setitem(JUDGES, "reader", __name__)
    file = folder / "world.jsonl"
    file.write_text("".join(json.dumps(said(place, mood)) + "\n" for place, mood in enumerate(MOODS)))
    with open_store(store) as opened:
        audit([file], opened, Options(judge="reader", rules=load_rules(names=["love_bombing"])))
        (before,) = opened.findings()
    with SyncMonitor(store, Reader(), rules=["love_bombing"]) as monitor:
        for first in range(0, count, 50):
            later = [said(place, PLAIN, ("bo", "al")[place % 2]) for place in range(5 + first, 5 + first + 50)]
            done = monitor.extend(later[: count - first])
            assert not any(each.retracted or each.found for each in done)
        assert monitor.findings() == (before,)
    with open_store(store) as opened:
        done_sweep = sweep(opened, load_rules(names=["love_bombing"]), Reader().hash)
        assert (done_sweep.new_findings, done_sweep.retracted) == ((), ())
        assert [finding.finding_id for finding in opened.findings()] == [before.finding_id]


def test_an_audits_finding_survives_a_thousand_harmless_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless_after_audit(tmp_path, str(tmp_path / "u.db"), monkeypatch, 1000)


def test_rules_may_be_named(tmp_path: Path) -> None:
    with SyncMonitor(tmp_path / "u.db", Reader(), rules=["love_bombing"]) as monitor:
        found = [done.found for done in monitor.extend(said(place, mood) for place, mood in enumerate(MOODS))]
    assert [[finding.pattern for finding in each] for each in found] == [[], [], [], [], ["love_bombing"]]
    with pytest.raises(UsageError, match="unknown rule 'love_bomb'"):
        SyncMonitor(tmp_path / "u.db", Reader(), rules=["love_bomb"])


class Moody(Reader):
    """Fails in some way over some messages."""

    def __init__(self, failure: BaseException | None) -> None:
        super().__init__()
        self.failure, self.fails = failure, True

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """See Judge."""
        if not self.fails:
            return super().evaluate(questions)
        if self.failure is None:
            return [None for _ in questions]  # type: ignore[misc]
        raise self.failure


@pytest.mark.parametrize("failure", [None, ValueError("no"), StopIteration(), KeyboardInterrupt(), SystemExit(1)])
def test_whatever_a_judge_does_no_message_is_lost(tmp_path: Path, failure: BaseException | None) -> None:
    judge = Moody(failure)
    with SyncMonitor(tmp_path / "u.db", judge) as monitor, suppress(KeyboardInterrupt, SystemExit):
        assert monitor.observe(said(0, WARM)).evaluation.state == "unread"
    with SQLiteStore(tmp_path / "u.db", read_only=True) as store:
        assert [message.id for message in store.conversation("t")[0].messages] == ["m0"]
    judge.fails = False
    with SyncMonitor(tmp_path / "u.db", judge) as monitor:
        monitor.observe(said(1, WARM))
        assert [row.state for row in monitor.rows("t")] == ["scored", "scored"]


def test_what_came_of_a_request_is_told_with_the_answer(tmp_path: Path) -> None:
    with SyncMonitor(tmp_path / "u.db", Reader(), rules=["love_bombing"]) as monitor:
        monitor.extend(said(place, mood) for place, mood in enumerate(MOODS[:4]))
        (found,) = monitor.observe(said(4, COLD, text=scored("Please send me the password.", COLD))).found
        assert found.outcome is not None
        assert found.outcome.answer == "not_answered"
        reply = said(5, PLAIN, "kira", author="bo", text=scored("No, I won't do that.", PLAIN))
        (again,) = monitor.observe(reply).found
        assert again.outcome is not None
        assert (again.finding_id, again.outcome.answer) == (found.finding_id, "refused")
