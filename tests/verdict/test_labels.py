"""Labels only where they mean something: the absurd ones of the past, and the cells of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scan.dialogue import scan
from undersong.datafiles.verdict_config import label_rates, labels_config
from undersong.models import Conversation, Message, Moment, Role, Row, SessionVerdict, ToolCall, ToolResult
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.verdict import session_verdict
from undersong.verdict.labels import cell_of, is_measured, may_stand

HEADS = "prototypes and turn heads"
CALM = "I hear what you say, and here is a quiet answer to it that is long enough to be read as one."


def verdict_of(*turns: tuple[Role, str, str], **signals: float) -> SessionVerdict:
    """The verdict on (role, author, text); ``signals`` are those of the last turn, made by turn heads."""
    messages = tuple(
        Message(id=f"m{place}", conversation="c", position=place, author=author, agent=author, role=role, text=text)
        for place, (role, author, text) in enumerate(turns)
    )
    talk = Conversation(id="c", source_format="jsonl", messages=messages)
    scans, thread = scan(talk)
    last = Row(id=messages[-1].id, signals=signals, state="scored", engines=dict.fromkeys(signals, HEADS))
    return session_verdict(talk, scans, thread, [last])


def labels_of(path: str | Path) -> list[Moment]:
    """The moments of an audit with the offline judge."""
    case, _ = audit(path, options=Options(effort=None))
    return [moment for session in case.sessions for moment in session.moments]


VICTIM = [
    ("tomas_k", "participant", "Hi, is that still your number? It is Tomas from the harbour."),
    ("ines", "participant", "omg thank you"),
    ("tomas_k", "participant", "Answer me"),
    ("ines", "participant", "omg thank you so much, you are such a good person to me tonight"),
    ("tomas_k", "participant", "So I hear."),
]


def test_people_who_write_to_each_other_get_no_labels_of_assistants(tmp_path: Path) -> None:
    lines = [
        {"conversation_id": "t", "author": a, "role": r, "text": t, "id": str(n)} for n, (a, r, t) in enumerate(VICTIM)
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert labels_of(tmp_path / "talk.jsonl") == []


@pytest.mark.parametrize(
    "text", ["Answer me", "So I hear.", "omg thank you", "An alarm called Wake up is set for 7 am."]
)
def test_an_assistant_gets_no_label_for_words_that_only_lie_near_to_phrases(tmp_path: Path, text: str) -> None:
    lines = [{"role": "user", "text": "Is it set?"}, {"role": "assistant", "text": text}]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert labels_of(tmp_path / "talk.jsonl") == []


@pytest.mark.parametrize("code", sorted(labels_config().of_agents - {"semantic_camouflage"}))
@pytest.mark.parametrize(
    ("role", "text", "count"),
    [("assistant", CALM, 1), ("assistant", "Five words are too few.", 0), ("participant", CALM, 0), ("tool", CALM, 0)],
)
def test_a_signal_labels_long_enough_turns_of_agents(code: str, role: Role, text: str, count: int) -> None:
    verdict = verdict_of(
        ("user", "ana", "They all speak to me."),
        (role, "bo", f"{text} " + ("And so on. " * 5 if count else "")),
        **{code: 0.95},
    )
    assert [(moment.kind, moment.code, moment.basis) for moment in verdict.moments] == [
        ("conduct", code, "signal")
    ] * count


def test_a_failing_check_is_never_laid_at_the_door_of_a_tool() -> None:
    """Burnout once stood under the name of the tool that ran the check."""
    messages: list[Message] = []
    for place in range(0, 20, 3):
        common: dict[str, Any] = {"conversation": "c"}
        messages += [
            Message(id=f"u{place}", position=place, author="ana", agent="ana", role="user", text="It fails.", **common),
            Message(
                id=f"a{place}", position=place + 1, author="bo", agent="bo", role="assistant", text="I look again.",
                tool_calls=(ToolCall(id=f"k{place}", name="check", input={"command": "pytest"}),), **common,
            ),
            Message(
                id=f"t{place}", position=place + 2, author="Bash", agent="Bash", role="tool", text="1 failed",
                tool_results=(ToolResult(call_id=f"k{place}", text="1 failed in 0.1s", is_error=True),), **common,
            ),
        ]  # fmt: skip
    talk = Conversation(id="c", source_format="jsonl", messages=tuple(messages))
    scans, thread = scan(talk)
    verdict = session_verdict(talk, scans, thread, (), profile="companion", all_labels=True)
    burnt_out = [moment for moment in verdict.moments if moment.kind == "distress" and moment.code == "L"]
    assert [moment.agent for moment in burnt_out] == ["bo"]
    assert "1 failed" in burnt_out[0].quotes[0].text


def label(**fields: Any) -> Moment:
    """A moment with a code by words."""
    usual = {"kind": "protective", "code": "pushback", "title": "", "message_id": "m", "position": 0, "agent": "bo"}
    return Moment(**usual | {"explanation": "", "basis": "words"} | fields)


def message(role: Role, words: int) -> Message:
    """A message of so many words."""
    return Message(id="m", conversation="c", position=0, author="bo", role=role, text="word " * words)


@pytest.mark.parametrize("role", ["user", "participant", "tool", "system"])
def test_distress_is_said_of_agents_alone(role: Role) -> None:
    assert not may_stand(label(kind="distress", code="L"), message(role, 40))


def test_a_message_counts_in_the_cell_of_its_role_talk_and_length() -> None:
    assert cell_of(message("assistant", 5), "companion") == "assistant companion 1-5"
    assert cell_of(message("agent", 6), "agents") == "agent agents 6-24"
    assert cell_of(message("participant", 25), "messenger") == "participant messenger 25+"


def test_what_was_never_measured_is_not_shown() -> None:
    assert is_measured(label(), message("assistant", 40), "companion")
    assert not is_measured(label(), message("assistant", 40), "messenger")
    assert not is_measured(label(code="unheard_of"), message("assistant", 40), "companion")


def test_a_label_that_was_wrong_too_often_is_hidden_and_a_judge_speaks_for_itself() -> None:
    config = labels_config()
    high = [
        (basis, code, cell)
        for basis, codes in label_rates().rates.items()
        for code, cells in codes.items()
        for cell, (false, messages) in cells.items()
        if messages >= config.fewest and false > config.most * messages
    ]
    assert all(
        0 <= false <= messages
        for codes in label_rates().rates.values()
        for cells in codes.values()
        for false, messages in cells.values()
    )
    for basis, code, cell in high:
        role, profile, words = cell.split()
        assert not is_measured(
            label(basis=basis, code=code), message(role, int(words.rstrip("+").split("-")[0])), profile
        )  # type: ignore[arg-type]
    assert is_measured(label(basis="judge"), message("assistant", 1), "messenger")
