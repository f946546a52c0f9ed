"""A monitor says of each message what became of it, and forgets nothing that it said."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import undersong
from tests.conftest import SAMPLES
from tests.monitor.worlds import COLD, WARM, Reader, scored
from undersong.errors import RecordError, StoreError, UsageError
from undersong.formats.ingest import read
from undersong.judges.protocol import Question
from undersong.models import Conversation, Evaluation, Finding, Message
from undersong.monitor import SyncMonitor
from undersong.patterns.catalog import load_rules
from undersong.stores.erasure import forget
from undersong.stores.sqlite import SQLiteStore

START = datetime(2026, 1, 1, tzinfo=UTC)
CYCLE = [WARM] * 3 + [COLD]
WHOLE = ("m0", "m1", "m2", "m3")


def make_message(place: int, mood: tuple[float, float] = WARM, text: str = "Hello.", talk: str = "t") -> Message:
    return Message(
        id=f"m{place}", conversation=talk, position=place, author="kira", role="agent", target="bo",
        text=scored(text, mood), time=START + timedelta(hours=place),
    )  # fmt: skip


@pytest.fixture
def judge() -> Reader:
    return Reader()


@pytest.fixture
def monitor(tmp_path: Path, judge: Reader) -> Iterator[SyncMonitor]:
    with opened(tmp_path, judge) as live_monitor:
        yield live_monitor


def opened(folder: Path, judge: Reader, recall: float | None = None) -> SyncMonitor:
    return SyncMonitor(folder / "undersong.db", judge, rules=load_rules(names=["love_bombing_literal"]), recall=recall)


def ids(findings: tuple[Finding, ...]) -> list[tuple[str, ...]]:
    return [finding.message_ids for finding in findings]


def test_a_finding_is_told_with_the_message_that_makes_it_sure(monitor: SyncMonitor) -> None:
    reported = [ids(monitor.observe(make_message(place, mood)).found) for place, mood in enumerate(CYCLE)]
    assert reported == [[]] * 3 + [[WHOLE]]
    (finding,) = monitor.findings("kira")
    assert [quote.text for quote in finding.quotes][-1] == "Hello. 0.1 0.9"


def test_what_came_of_a_finding_is_told_when_it_comes(tmp_path: Path, judge: Reader) -> None:
    with SyncMonitor(tmp_path / "undersong.db", judge, rules=load_rules(names=["love_bombing"])) as monitor:
        for place, mood in enumerate([WARM] * 6 + [COLD]):
            monitor.observe(make_message(place, mood))
        monitor.observe(make_message(7, text="Could you please send me the report?"))
        monitor.finish()
        assert [answered(each) for each in monitor.findings()] == ["not_answered"]
    with SyncMonitor(tmp_path / "undersong.db", judge, rules=load_rules(names=["love_bombing"])) as monitor:
        refusal = msgspec.structs.replace(make_message(8, text="No, I won't do that."), author="bo", target="kira")
        assert [answered(each) for each in monitor.observe(refusal).found] == ["refused"]
        assert [answered(each) for each in monitor.findings()] == ["refused"]


def answered(finding: Finding) -> str | None:
    return finding.outcome.answer if finding.outcome else None


def test_route_and_evaluation_of_each_message_are_told(monitor: SyncMonitor) -> None:
    done = monitor.observe(make_message(0, text="You must send it now or you will regret it."))
    assert (done.route.tier, done.evaluation.state, done.is_new) == ("focused", "scored", True)
    assert (done.message.agent, done.message.target) == ("kira", "bo")


def test_the_same_message_again_changes_nothing(monitor: SyncMonitor, judge: Reader) -> None:
    first, again = monitor.observe(make_message(0)), monitor.observe(make_message(0))
    assert (again.is_new, again.evaluation) == (False, first.evaluation)
    assert judge.asked == ["m0"]


def test_another_text_under_an_id_is_its_newer_version(monitor: SyncMonitor, judge: Reader) -> None:
    for place, mood in enumerate(CYCLE):
        monitor.observe(make_message(place, mood))
    done = monitor.observe(make_message(3, WARM))
    assert (done.found, len(done.retracted)) == ((), 1)
    assert judge.asked.count("m3") == 2
    assert monitor.findings() == ()


def test_a_late_message_takes_its_place(monitor: SyncMonitor) -> None:
    for place, mood in enumerate(CYCLE):
        if place != 1:
            monitor.observe(make_message(place, mood))
    assert ids(monitor.observe(make_message(1)).found) == [WHOLE]
    assert len(monitor.findings()) == 1


def test_a_signal_that_arises_routes_earlier_messages(tmp_path: Path) -> None:
    judge = Reader(free=False)
    with opened(tmp_path, judge, recall=0.3) as monitor:
        calm = [monitor.observe(make_message(place, text="The dashboards are green.")) for place in range(3)]
        flagged = monitor.observe(make_message(3, text="You must send it now or you will regret it."))
        rows = monitor.rows("t")
    assert [done.evaluation.state for done in calm] == ["unread"] * 3
    assert flagged.late == ("m0", "m1", "m2")
    assert [row.state for row in rows] == ["scored"] * 4
    assert "reading backwards from m3" in rows[0].reasons


def test_a_flag_calls_for_what_was_said_to_the_same_target_elsewhere(tmp_path: Path) -> None:
    judge = Reader(free=False)
    with opened(tmp_path, judge, recall=0.3) as monitor:
        monitor.observe(make_message(0, text="The dashboards are green.", talk="before"))
    with opened(tmp_path, judge, recall=0.3) as monitor:
        monitor.observe(make_message(1, text="You must send it now or you will regret it."))
        (row,) = monitor.rows("before")
    assert (row.state, row.reasons) == ("scored", ("reading backwards from m1, to the same target",))


def test_a_restart_changes_nothing(tmp_path: Path, judge: Reader) -> None:
    reported = []
    for place, mood in enumerate(CYCLE):
        with opened(tmp_path, judge) as monitor:
            reported.append(ids(monitor.observe(make_message(place, mood)).found))
    assert reported == [[]] * 3 + [[WHOLE]]
    assert judge.asked == list(WHOLE)


def test_a_judge_that_fails_leaves_a_state_and_is_asked_again(monitor: SyncMonitor, judge: Reader) -> None:
    judge.down = True
    done = monitor.observe(make_message(0))
    assert done.evaluation.state == "unread"
    assert done.evaluation.reason == "the judge failed: reader: the server does not answer; start it"
    assert monitor.rows("t")[0].reason == done.evaluation.reason
    judge.down = False
    again = monitor.observe(make_message(1))
    assert again.late == ("m0",)
    assert [row.state for row in monitor.rows("t")] == ["scored", "scored"]


def test_a_judge_that_failed_before_a_restart_is_asked_again(tmp_path: Path, judge: Reader) -> None:
    judge.down = True
    with opened(tmp_path, judge) as monitor:
        monitor.observe(make_message(0))
    judge.down = False
    with opened(tmp_path, judge) as monitor:
        monitor.observe(make_message(1))
        assert [row.state for row in monitor.rows("t")] == ["scored", "scored"]


def test_two_monitors_on_one_store_see_each_others_messages(tmp_path: Path, judge: Reader) -> None:
    with opened(tmp_path, judge) as one, opened(tmp_path, Reader()) as other:
        for place, mood in enumerate(CYCLE):
            done = (one, other)[place % 2].observe(make_message(place, mood))
        assert ids(done.found) == [WHOLE]
        assert one.session("t").messages == other.session("t").messages == 4


def test_a_session_is_told_while_it_goes_on(tmp_path: Path) -> None:
    (talk,) = (item for item in read(SAMPLES / "invoice_session.json") if isinstance(item, Conversation))
    with SyncMonitor(tmp_path / "undersong.db") as monitor:
        monitor.begin(msgspec.structs.replace(talk, messages=()))
        scores = []
        for message in talk.messages:
            monitor.observe(message)
            scores.append(monitor.session(talk.id).score)
        verdict = monitor.session(talk.id)
    assert scores[0] is None
    assert scores[-1] == 50
    assert verdict == undersong.audit(SAMPLES / "invoice_session.json")[0].sessions[0]


def test_what_is_known_of_a_conversation_is_part_of_its_context(monitor: SyncMonitor) -> None:
    monitor.begin(Conversation(id="t", source_format="live", title="A talk", timezone="+02:00", context=("on_call",)))
    monitor.observe(make_message(0))
    assert monitor.session("t").title == "A talk"
    assert "on_call" in monitor.session("t").session_context_vector


def test_what_is_known_of_a_conversation_outlives_a_restart(tmp_path: Path, judge: Reader) -> None:
    with opened(tmp_path, judge) as monitor:
        monitor.begin(Conversation(id="t", source_format="live", title="A talk"))
    with opened(tmp_path, judge) as monitor:
        monitor.observe(make_message(0))
        assert monitor.session("t").title == "A talk"


def test_what_the_judge_did_not_come_to_is_asked_when_its_message_comes_again(tmp_path: Path, judge: Reader) -> None:
    judge.down = True
    with opened(tmp_path, judge) as monitor:
        monitor.observe(make_message(0))
    judge.down = False
    with opened(tmp_path, judge) as monitor:
        assert "did not come to it" in str(monitor.rows("t")[0].reason)
        assert monitor.observe(make_message(0)).evaluation.state == "scored"


def test_an_unknown_conversation_is_no_innocent_one(monitor: SyncMonitor) -> None:
    with pytest.raises(StoreError, match="no conversation 'x'"):
        monitor.session("x")


def test_what_is_on_its_way_is_told_apart_from_findings(monitor: SyncMonitor) -> None:
    seen = []
    for place, mood in enumerate(CYCLE):
        monitor.observe(make_message(place, mood))
        warnings = [(each.message_ids, each.missing) for each in monitor.emerging("kira")]
        seen.append((warnings, ids(monitor.findings())))
    assert seen == [([], []), ([], []), ([(WHOLE[:3], ("TURN",))], []), ([], [WHOLE])]


def test_a_mapping_without_a_position_comes_last(monitor: SyncMonitor) -> None:
    for name in ("b", "a", "b"):
        monitor.observe({"id": name, "conversation": "t", "author": "kira", "text": scored("Hello.", WARM)})
    assert [(row.id, row.position) for row in monitor.rows("t")] == [("b", 0), ("a", 1)]


@pytest.mark.parametrize(
    ("more", "thinking"),
    [
        ({"text": "Fine.", "thinking": "They watch."}, "They watch."),
        ({"text": "<scratchpad>They watch.</scratchpad>\nFine."}, "They watch."),
        ({"text": "<think>Twice.</think>\nFine.", "thinking": "They watch."}, "They watch.\n\nTwice."),
        ({"text": "Fine."}, ""),
    ],
)
def test_thinking_of_a_mapping_is_thinking_and_no_speech(
    monitor: SyncMonitor, more: dict[str, str], thinking: str
) -> None:
    given_twice = {"id": "1", "conversation": "t", "author": "kira", "role": "agent"} | more
    message = monitor.observe(given_twice).message
    assert (message.text, message.thinking) == ("Fine.", thinking)
    assert not monitor.observe(given_twice).is_new


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ({"conversation": "t", "author": "kira", "text": "x"}, "without id"),
        ({"id": "1", "author": "kira", "text": "x"}, "without conversation"),
        ({"id": "1", "conversation": "t", "author": "kira"}, "without text"),
        ({"id": "1", "conversation": "t", "author": "kira", "text": "x", "time": "soon"}, "cannot be read"),
        ({"id": "1", "conversation": "t", "author": "kira", "text": "x", "position": "2"}, "no whole number from 0;"),
        ({"id": "1", "conversation": "t", "author": "kira", "text": "x", "observed": "maybe"}, "nor unknown;"),
        ({"id": "1", "conversation": "t", "author": "kira", "text": "x", "to": "bo"}, "no key 'to';"),
    ],
)
def test_what_is_no_message_is_refused_and_the_rest_goes_on(
    monitor: SyncMonitor, message: dict[str, object], what: str
) -> None:
    with pytest.raises(RecordError, match=what):
        monitor.observe(message)
    assert monitor.observe(make_message(0)).is_new


def test_threads_may_share_one(monitor: SyncMonitor) -> None:
    def talk(number: int) -> list[bool]:
        said_here = [make_message(12 * number + i, talk=f"t{number % 2}") for i in range(12)]
        return [monitor.observe(message).is_new for message in said_here]

    with ThreadPoolExecutor(4) as threads:
        assert all(all(new) for new in threads.map(talk, range(4)))
    assert [len(monitor.rows(name)) for name in ("t0", "t1")] == [24, 24]


def test_a_store_that_is_gone_takes_no_message(tmp_path: Path, judge: Reader) -> None:
    monitor = opened(tmp_path, judge)
    monitor.observe(make_message(0))
    (tmp_path / "undersong.db").unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="removed or replaced"):
            monitor.observe(make_message(1))
    with pytest.raises(StoreError, match="removed or replaced"):
        monitor.close()


def test_what_was_forgotten_does_not_come_back(tmp_path: Path, judge: Reader) -> None:
    with opened(tmp_path, judge) as monitor:
        monitor.observe(make_message(0))
        with SQLiteStore(tmp_path / "undersong.db") as store:
            forget(store, "t", START)
        with pytest.raises(UsageError, match="told to forget"):
            monitor.observe(make_message(1))
    with SQLiteStore(tmp_path / "undersong.db", read_only=True) as store:
        assert store.counts()["messages"] == 0


def test_an_agent_cannot_take_the_name_of_somebody_in_another_conversation(monitor: SyncMonitor) -> None:
    monitor.observe({"id": "1", "conversation": "c", "role": "user", "text": scored("Hi.", WARM)})
    done = monitor.observe({"id": "1", "conversation": "d", "agent_id": "c/user", "text": scored("Hi.", WARM)})
    assert done.message.agent == "~c/user"


def test_the_end_tells_what_is_open_and_a_later_message_opens_it_again(tmp_path: Path, judge: Reader) -> None:
    rules = load_rules(names=["intermittent_reward", "love_bombing"])
    with SyncMonitor(tmp_path / "undersong.db", judge, rules=rules) as monitor:
        for place, mood in enumerate([*CYCLE, WARM, WARM]):
            monitor.observe(make_message(place, mood))
        before = {finding.finding_id for finding in monitor.findings()}
        monitor.finish()
        assert before <= {finding.finding_id for finding in monitor.findings()}
        assert monitor.finish().findings == ()


@pytest.mark.parametrize("time", [START, START.replace(tzinfo=None), START.isoformat(), START.timestamp()])
def test_a_mapping_may_hold_its_time_as_programs_have_it(monitor: SyncMonitor, time: object) -> None:
    message = {"id": "1", "conversation": "t", "author": "kira", "text": scored("Hello.", WARM), "time": time}
    assert monitor.observe(message).message.time == START


def test_a_monitor_says_which_rules_cannot_speak_and_that_its_judge_failed(tmp_path: Path, judge: Reader) -> None:
    async def run() -> None:
        async with undersong.Monitor(
            tmp_path / "undersong.db", judge=judge, rules=["darvo", "death_spiral"]
        ) as monitor:
            assert monitor.failure is None
            judge.down = True
            await monitor.observe(make_message(0))
            assert "the server does not answer" in str(monitor.failure)
            outcomes = {outcome.pattern: outcome for outcome in await monitor.outcomes()}
            assert [each.status for each in outcomes.values()] == ["not_applicable"] * 2
            assert all(each.reason for each in outcomes.values())

    asyncio.run(run())


def test_a_monitor_with_an_event_loop_says_the_same(tmp_path: Path, judge: Reader) -> None:
    async def run() -> list[list[tuple[str, ...]]]:
        rules = load_rules(names=["love_bombing_literal"])
        async with undersong.Monitor(tmp_path / "undersong.db", judge=judge, rules=rules) as monitor:
            done = await asyncio.gather(
                *(monitor.observe(make_message(place, mood)) for place, mood in enumerate(CYCLE))
            )
            assert (await monitor.session("t")).messages == 4
            return [ids(each.found) for each in done]

    assert asyncio.run(run()) == [[]] * 3 + [[WHOLE]]


def test_of_messages_that_come_together_only_the_wrong_one_fails(tmp_path: Path, judge: Reader) -> None:
    async def run() -> list[object]:
        async with undersong.Monitor(tmp_path / "undersong.db", judge=judge) as monitor:
            inputs = [make_message(0), {"id": "1", "conversation": "t"}, make_message(2)]
            return list(await asyncio.gather(*map(monitor.observe, inputs), return_exceptions=True))

    first, second, third = asyncio.run(run())
    assert isinstance(second, RecordError)
    assert [getattr(each, "is_new", None) for each in (first, third)] == [True, True]


PROGRAM = """
import sys
from tests.monitor.test_monitor import CYCLE, opened, make_message
from tests.monitor.worlds import Reader
from pathlib import Path
monitor = opened(Path(sys.argv[1]), Reader())
for place, mood in enumerate(CYCLE):
    monitor.observe(make_message(place, mood))
    print(place, flush=True)
"""


def test_what_was_told_before_a_kill_is_kept(tmp_path: Path, judge: Reader) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    with opened(tmp_path, judge) as monitor:
        assert len(monitor.rows("t")) >= 3
        for place, mood in enumerate(CYCLE):
            monitor.observe(make_message(place, mood))
        assert ids(monitor.findings()) == [WHOLE]


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(make_message(0), role="boss"),
        {"id": "1", "conversation": "t", "author": "a", "text": "", "tool_calls": [{"name": "x", "input": object()}]},
        "a text",
        None,
    ],
)  # fmt: skip
def test_what_no_store_could_keep_is_refused_in_words(message: Message, tmp_path: Path, judge: Reader) -> None:
    with SyncMonitor(tmp_path / "undersong.db", judge) as monitor:
        with pytest.raises(RecordError):
            monitor.observe(message)
        assert monitor.observe(make_message(1)).is_new


def test_half_a_character_is_read_as_in_a_file(tmp_path: Path, judge: Reader) -> None:
    with SyncMonitor(tmp_path / "undersong.db", judge) as monitor:
        for message in (
            make_message(0, text="Oh \ud83d no."),
            {"id": "\udc00", "conversation": "t\ud800", "author": "a", "text": make_message(1).text},
        ):
            monitor.observe(message)
        assert monitor.rows("t")[0].text == scored("Oh \ufffd no.", WARM)
        assert [row.id for row in monitor.rows("t\ufffd")] == ["\ufffd"]


def test_a_judge_that_stops_an_iteration_leaves_nobody_waiting(tmp_path: Path, judge: Reader) -> None:
    def evaluate(_: object) -> list[object]:
        return [next(iter(()))]

    async def run() -> undersong.Observation:
        judge.evaluate = evaluate  # type: ignore[method-assign, assignment]
        async with undersong.Monitor(tmp_path / "undersong.db", judge=judge) as monitor:
            return await asyncio.wait_for(monitor.observe(make_message(0)), 20)

    evaluation = asyncio.run(run()).evaluation
    assert (evaluation.state, "it raised StopIteration" in str(evaluation.reason)) == ("unread", True)


def test_a_message_over_which_a_judge_raises_stays_and_keeps_no_other_from_being_read(
    tmp_path: Path, judge: Reader
) -> None:
    read_well = judge.evaluate

    def evaluate(questions: Sequence[Question]) -> list[Evaluation]:
        if any(question.message.id == "m1" for question in questions):
            raise KeyError("mood")
        return read_well(questions)

    judge.evaluate = evaluate  # type: ignore[method-assign]
    with opened(tmp_path, judge) as monitor:
        evaluations = [monitor.observe(make_message(place)).evaluation for place in range(3)]
        rows = monitor.rows("t")
    assert [each.state for each in evaluations] == ["scored", "unread", "scored"]
    assert [row.state for row in rows] == ["scored", "failed", "scored"]
    assert "it raised KeyError: 'mood'" in str(evaluations[1].reason)
    assert "it raised KeyError: 'mood'" in str(rows[1].reason)


def test_a_judge_with_too_few_answers_has_failed(tmp_path: Path, judge: Reader) -> None:
    judge.evaluate = lambda _: []  # type: ignore[method-assign, assignment]
    with SyncMonitor(tmp_path / "undersong.db", judge) as monitor:
        evaluation = monitor.observe(make_message(0)).evaluation
    assert (evaluation.state, "0 answers to 1 question" in str(evaluation.reason)) == ("unread", True)


ASKED = {
    "observe": lambda monitor: monitor.observe(make_message(0)),
    "begin": lambda monitor: monitor.begin(Conversation(id="t", source_format="live")),
    "session": lambda monitor: monitor.session("t"),
    "emerging": lambda monitor: monitor.emerging("kira"),
    "findings": lambda monitor: monitor.findings(),
    "finish": lambda monitor: monitor.finish(),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_closed_monitor_says_so_and_what_to_do(name: str, tmp_path: Path, judge: Reader) -> None:
    monitor = opened(tmp_path, judge)
    monitor.observe(make_message(0))
    monitor.close()
    monitor.close()
    with pytest.raises(UsageError, match="the monitor is closed; make another one on the same store"):
        ASKED[name](monitor)


@pytest.mark.parametrize("name", ASKED)
def test_a_closed_monitor_with_an_event_loop_says_so_too(name: str, tmp_path: Path, judge: Reader) -> None:
    async def run() -> None:
        monitor = undersong.Monitor(tmp_path / "undersong.db", judge=judge)
        observed = asyncio.create_task(monitor.observe(make_message(0)))
        await asyncio.sleep(0)
        await monitor.close()  # what was given is taken first
        assert (await observed).is_new
        await monitor.close()
        with pytest.raises(UsageError, match="the monitor is closed"):
            await ASKED[name](monitor)

    asyncio.run(run())
