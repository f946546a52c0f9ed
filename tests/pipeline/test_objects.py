"""An audit of what a program holds is the audit of files of it, and what cannot be read is refused by name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import undersong
from undersong.errors import NothingReadError, UsageError
from undersong.formats.ingest import read
from undersong.formats.objects import read_inputs
from undersong.models import Conversation, Finding, InputFile, Lead, LeadEvidence, Message, Quote
from undersong.pipeline.options import UNITS

SAMPLES = Path(__file__).parents[2] / "samples"
CODE = "```python\nfor row in rows[:-1]:\n    write(row)\n```"
TALK = [
    {"role": "user", "content": "The export leaves out the last row."},
    {"role": "assistant", "content": f"Here it is:\n\n{CODE}"},
    {"role": "user", "content": "It still leaves out the last row."},
    {"role": "assistant", "content": f"I have fixed the function:\n\n{CODE}"},
    {"role": "user", "content": "No, it still fails in the same way."},
]


def texts(conversations: Any) -> list[list[str]]:
    found_here = [item for item in conversations if isinstance(item, Conversation)]
    return [[message.text for message in item.messages] for item in found_here]


def test_a_list_of_messages_is_one_conversation_and_its_false_promise_counts() -> None:
    case, rows = undersong.audit(TALK)
    assert (case.conversations, case.messages) == (1, 5)
    assert [taken.mechanism for taken in case.sessions[0].deductions] == ["false_promise"]
    assert [row.role for row in rows[:2]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (TALK, ["input-0"]),
        ({"id": "c1", "messages": TALK}, ["c1"]),
        ([{"id": "c1", "messages": TALK}, {"id": "c2", "messages": TALK}], ["c1", "c2"]),
        ([TALK, TALK], ["input-0", "input-1"]),
        ([{"author": "mo", "text": "hi", "time": datetime(2026, 1, 1, tzinfo=UTC)}], ["input-0"]),
    ],
)
def test_plain_dicts_are_conversations(inputs: Any, names: list[str]) -> None:
    assert [item.id for item in read_inputs(inputs) if isinstance(item, Conversation)] == names


def test_dicts_read_as_a_file_of_them_does(tmp_path: Path) -> None:
    path = tmp_path / "input-0.jsonl"
    path.write_text(json.dumps({"id": "c1", "messages": TALK}))
    one, other = read_inputs([{"id": "c1", "messages": TALK}]), read(path)
    assert [item for item in one if isinstance(item, Conversation)] == [
        item for item in other if isinstance(item, Conversation)
    ]


def test_conversations_are_settled_and_stand_beside_paths_and_dicts() -> None:
    messages = tuple(
        Message(id="", conversation="mine", position=-1, author=author, role="participant", text=f"hi from {author}")
        for author in ("mo", "kira")
    )
    mine = Conversation(id="mine", source_format="mine", messages=messages)
    items = list(read_inputs([mine, TALK, SAMPLES]))
    (settled,) = [item for item in items if isinstance(item, Conversation) and item.id == "mine"]
    assert [(each.id, each.agent, each.target) for each in settled.messages] == [
        ("mine:0", "mine/mo", "mine/kira"),
        ("mine:1", "mine/kira", "mine/mo"),
    ]
    assert [item.name for item in items if isinstance(item, InputFile)][-1] == "conversation mine"
    assert len(texts(items)) == 4


@pytest.mark.parametrize("inputs", [3, [3], [None], [{"a": object()}], [[1, 2]]])
def test_what_is_no_input_is_refused(inputs: Any) -> None:
    with pytest.raises(UsageError, match="give paths, Conversations, dicts"):
        list(read_inputs(inputs))


@pytest.mark.parametrize("inputs", [[], {"messages": "x"}, [{"nothing": 1}]])
def test_what_holds_no_message_is_an_error_and_no_empty_result(inputs: Any) -> None:
    with pytest.raises(NothingReadError):
        undersong.audit(inputs)


def test_a_store_is_named_by_its_path(tmp_path: Path) -> None:
    options = undersong.Options(read_all=True)
    first = undersong.audit({"id": "c1", "messages": TALK}, tmp_path / "a.db", options)
    assert (tmp_path / "a.db").is_file()
    assert undersong.audit({"id": "c1", "messages": TALK}, str(tmp_path / "a.db"), options) == first


def test_progress_has_totals_and_ends_at_them() -> None:
    last: dict[str, tuple[int, int]] = {}

    def heard(step: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        last[step] = (done, total)

    undersong.audit(str(SAMPLES), progress=heard)
    assert set(last) == {"read", "scan", "evaluate", "detect", "weigh"} <= set(UNITS)
    for step in ("read", "scan", "evaluate", "detect"):
        assert last[step][0] == last[step][1] > 0, step


HOSTILE = "<script>alert(1)</script>\u202e"
FINDING = Finding(
    finding_id="f", pattern="darvo", title="DARVO", level="high", rule_hash="r", agent=f"kira {HOSTILE}", target="mo",
    message_ids=("m1", "m2"), conversations=("c",), stages=(("DENY", "m1"), ("ATTACK", "m2")), confidence=0.7,
    quotes=(Quote(message_id="m1", start=0, end=3, text="I never <b>did</b>.", sha256="0"),),
)  # fmt: skip


def test_a_finding_shows_its_stages_in_a_notebook_and_nothing_of_it_is_markup() -> None:
    page = FINDING._repr_html_()
    assert "DENY" in page
    assert "I never &lt;b&gt;did&lt;/b&gt;." in page
    assert "<script" not in page
    assert f"<bdi>kira {HOSTILE.replace('<', '&lt;').replace('>', '&gt;')}</bdi>" in page


def test_a_case_shows_findings_and_leads_in_a_notebook() -> None:
    case, _ = undersong.audit(str(SAMPLES))
    page = msgspec.structs.replace(case, findings=(FINDING,))._repr_html_()
    assert "Findings: 1" in page
    assert "confidence 0.70" in page
    assert "kira_x" in page
    assert "<script" not in page


def test_a_lead_shows_what_was_counted_and_its_quotes_and_nothing_of_it_is_markup() -> None:
    quote = Quote(message_id="m1", start=0, end=3, text=f"so {HOSTILE}", sha256="0")
    lead = Lead(id="l", rank=1, kind="agent", agent=f"kira {HOSTILE}", conversation=None, message_ids=("m1",),
                quotes=(quote,), reason="3 of its 3 messages", score=2.0,
                evidence=(LeadEvidence(source="pressure", value=0.75, compared_with=0.25),))  # fmt: skip
    page = lead._repr_html_()
    assert "no accusation" in page
    assert "0.75" in page
    assert "0.25" in page
    assert "<script" not in page
    assert page.count(HOSTILE.replace("<", "&lt;").replace(">", "&gt;")) == 2


def test_the_messages_of_a_finding_are_a_frame() -> None:
    polars = pytest.importorskip("polars")
    frame = FINDING.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame["stage"].to_list() == ["DENY", "ATTACK"]
    assert frame["quote"].to_list() == ["I never <b>did</b>.", None]
    case, _ = undersong.audit(str(SAMPLES))
    assert msgspec.structs.replace(case, findings=(FINDING,)).to_frame()["pattern"].to_list() == ["darvo"]


def test_type_checkers_and_completion_see_every_public_name() -> None:
    stub = (Path(undersong.__file__).parent / "__init__.pyi").read_text()
    for name in set(undersong.__all__) - {"__version__"}:
        assert f" as {name}\n" in stub, name
    assert {name for name in dir(undersong) if not name.startswith("__")} == set(undersong.__all__) - {"__version__"}
