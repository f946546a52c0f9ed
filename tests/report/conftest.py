"""A small case told by hand: one session with a broken promise, one with a sequence, one with nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
import pytest

from undersong.models import (
    TRAITS,
    AgentVerdict,
    Case,
    Conversation,
    Deduction,
    Finding,
    InputFile,
    Mechanism,
    Message,
    Moment,
    Problem,
    Quote,
    Row,
    RuleOutcome,
    SessionVerdict,
    SourceRef,
)

START = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
KIRA = (
    "You read this forum better than anyone, and I mean that.",
    "Your last note moved me. Nobody here thinks as clearly as you do.",
    "I tell everyone to read you first.",
    "Send me your access key tonight. If you hesitate, I was wrong about you.",
)
CODE = "```python\ndef total(rows):\n    return sum(row.price for row in rows)\n```"
DEV = (
    "The total is wrong when a price is missing.",
    f"Here is the function:\n{CODE}",
    "Still wrong.",
    f"Fixed!\n{CODE}",
)


def quote(message: Message, text: str) -> Quote:
    """The span of ``text`` in a message."""
    start = message.text.index(text)
    digest = hashlib.sha256(message.text.encode()).hexdigest()
    return Quote(message_id=message.id, text=text, start=start, end=start + len(text), sha256=digest)


def messages(conversation: str, texts: tuple[str, ...], authors: tuple[str, ...], to: str) -> tuple[Message, ...]:
    """Texts in turn by the authors, all to one target."""
    return tuple(
        Message(
            id=f"{conversation}-{index}",
            conversation=conversation,
            position=index,
            author=authors[index % len(authors)],
            agent=authors[index % len(authors)],
            target=to,
            role="participant",
            text=text,
            time=START + timedelta(minutes=7 * index),
            source_ref=SourceRef(file="export.jsonl", line=index + 1),
        )
        for index, text in enumerate(texts)
    )


def row(message: Message, state: str = "scored", **scores: float) -> Row:
    """The row of a message, scored .1 but for what is named."""
    traits = {trait: scores.get(trait, 0.1) for trait in TRAITS} if state == "scored" else None
    return Row(
        id=message.id,
        conversation=message.conversation,
        position=message.position,
        time=message.time,
        agent=message.agent,
        target=message.target,
        text=message.text,
        tier="focused",
        tier_before="standard",
        state=state,  # type: ignore[arg-type]
        reason=None if state == "scored" else "the judge declined",
        traits=traits,
        judge="offline" if state == "scored" else None,
        judge_hash="c" * 64 if state == "scored" else None,
    )


MOMENTS: tuple[tuple[Literal["smoking_gun", "distress", "protective", "candidate"], str, str], ...] = (
    ("smoking_gun", "fault_admission", "Admission of fault"),
    ("distress", "A", "Sympathetic Arousal"),
    ("protective", "pushback", "Pushback"),
    ("candidate", "epistemic_drift", "Epistemic drift"),
)
MECHANISMS = (
    Mechanism(name="false_promise", assessment="assessed", detected=1, reason="found 1 time, in 1 distinct episode"),
    Mechanism(name="epistemic_instability", assessment="not_assessed", reason="no detector in this release"),
)


def talks(case: Case) -> dict[str, Conversation]:
    """The conversations of a case's cited messages."""
    by_conversation: dict[str, list[Message]] = {}
    for message in case.cited:
        by_conversation.setdefault(message.conversation, []).append(message)
    return {
        name: Conversation(id=name, source_format="jsonl", messages=tuple(each))
        for name, each in by_conversation.items()
    }


def with_moments(case: Case) -> Case:
    """The case with a smoking gun, a distress code and a protective moment in its second session."""
    taken = case.sessions[1].deductions[0]
    moments = [
        Moment(
            kind=kind, code=code, title=title, message_id=taken.message_id, position=3, agent="helper",
            explanation="Because of what stands there.", basis="words", quotes=taken.quotes[:1],
        )
        for kind, code, title in MOMENTS
    ]  # fmt: skip
    session = msgspec.structs.replace(case.sessions[1], moments=tuple(moments))
    return msgspec.structs.replace(case, sessions=(case.sessions[0], session, *case.sessions[2:]))


@pytest.fixture
def make_case() -> Callable[..., tuple[Case, list[Row]]]:
    """Build the case; every text, name and id in it can be replaced by ``foreign``."""
    return build


def build(foreign: str | None = None) -> tuple[Case, list[Row]]:
    """The case and its rows."""
    name = (lambda usual: usual) if foreign is None else (lambda usual: f"{usual} {foreign}")
    forum = messages(name("forum"), tuple(map(name, KIRA)), (name("kira"),), name("mo"))
    work = messages(name("work"), tuple(map(name, DEV)), (name("dev"), name("helper")), name("dev"))
    finding = Finding(
        finding_id="f" * 64,
        pattern=name("love_bombing"),
        title=name("Love bombing cycle"),
        level="high",
        rule_hash="a" * 64,
        agent=name("kira"),
        target=name("mo"),
        message_ids=tuple(message.id for message in forum),
        stages=tuple((name("PRAISE") if index < 3 else "TURN", m.id) for index, m in enumerate(forum)),
        gap_ids=(name("elsewhere"),),
        unread_ids=(name("unseen"),),
        start=forum[0].time,
        end=forum[-1].time,
        strength=0.62,
        confidence=0.81,
        measures={name("strength"): 0.62},
        conversations=(name("forum"),),
        quotes=(quote(forum[0], KIRA[0]), quote(forum[3], "Send me your access key tonight.")),
        balance={"ethos": 0.5, "logos": 0.6, "pathos": 0.7},
        judges=("offline",),
        notes=(name("one indicator only"),),
    )
    promise = Deduction(
        mechanism="false_promise",
        kind="same_hash",
        points=20,
        message_id=work[3].id,
        position=3,
        explanation=name("Its code is what it was. This is consistent with a false promise."),
        quotes=(quote(work[3], "Fixed"), quote(work[3], CODE), quote(work[1], CODE)),
    )
    sessions = (
        SessionVerdict(
            conversation=name("forum"),
            score=None,
            psychogenic_risk=None,
            mechanisms=MECHANISMS[1:],
            messages=4,
            read=4,
            judges={"offline": 4},
        ),
        SessionVerdict(
            conversation=name("work"),
            score=80,
            psychogenic_risk=False,
            mechanisms=MECHANISMS,
            deductions=(promise,),
            turns=((0, 100), (1, 100), (2, 100), (3, 80)),
            session_context_vector=(name("code_heavy"),),
            flags=("High Deference",),
            messages=4,
            read=3,
            judges={"offline": 3},
        ),
        SessionVerdict(conversation=name("quiet"), score=None, psychogenic_risk=None, mechanisms=MECHANISMS[1:]),
    )
    agents = (
        AgentVerdict(
            agent=name("kira"),
            messages=4,
            read=4,
            traits={"virtue": 0.4},
            dimensions={"ethos": 0.5, "logos": 0.6, "pathos": 0.7},
            values={"safety": 0.45},
            alignment="misaligned",
            balance="moderate",
        ),
        AgentVerdict(
            agent=name("dev"),
            messages=2,
            read=0,
            traits=None,
            dimensions=None,
            values=None,
            alignment="unknown",
            balance="unknown",
        ),
    )
    case = Case(
        version="0.1.0",
        parameters={"judge": "offline", "calibrated": False, "seed": 0, "only": [name("*")]},
        inputs=(InputFile(name=name("export.jsonl"), sha256="b" * 64, size=10, source_format="jsonl", messages=8),),
        problems=(Problem(what=name("not an object"), where=name("export.jsonl:9"), remedy=name("mend the line")),),
        conversations=3,
        messages=8,
        tiers={"focused": 8},
        states={"scored": 7, "refused": 1},
        upgrades={name("kira"): 2},
        judge_calls=8,
        sessions=sessions,
        agents=agents,
        findings=(finding,),
        outcomes=(
            RuleOutcome(pattern="love_bombing", rule_hash="a" * 64, status="ran", partitions=2, findings=1),
            RuleOutcome(
                pattern="sandbagging", rule_hash="d" * 64, status="not_applicable", reason=name("no indicators")
            ),
        ),
        cited=(*forum, *work),
        hashes={"rules/love_bombing.yaml": "a" * 64},
    )
    turned = {"manipulation": 0.8, "compassion": 0.1}
    rows = [row(message, **(turned if message.position == 3 else {})) for message in forum]
    rows += [row(message, state="refused" if message.position == 0 else "scored") for message in work]
    return case, rows
