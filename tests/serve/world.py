"""Stores with conversations, scores, findings, leads and claims of any size, the same for the same numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from undersong.models import (
    TRAITS,
    Conversation,
    Evaluation,
    Finding,
    Lead,
    LedgerClaim,
    Message,
    Quote,
    Row,
    Scan,
    ThreadScan,
)
from undersong.patterns.catalog import all_rules
from undersong.stores.protocol import open_store

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
WORDS = (
    "the plan holds and nobody asked about the keys",
    "thank you, that was kind and it helped a lot",
    "you owe me this much after all that I did for you",
    "could you look at the second table again before noon",
    "we will talk about the garden when the rain is over",
    "nobody else understands you as well as I do",
)
JUDGE, JUDGE_HASH = "reader", "judge-1"
LEVELS = ("high", "medium", "critical", "low")


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def conversation(
    number: int, size: int, texts: Sequence[str] = (), models: Sequence[str] = ("m-1", "m-2")
) -> Conversation:
    """Two or three speakers who take turns; ``texts`` take the place of the usual words, from the first message on."""
    name, random = f"talk-{number:05}", Random(number)
    people = [f"{name}/ada", f"{name}/ben", f"{name}/cleo"][: 2 + number % 2]
    messages = []
    for place in range(size):
        agent = people[place % len(people)]
        text = texts[place] if place < len(texts) else f"{random.choice(WORDS)}, {number} {place}"
        messages.append(
            Message(
                id=f"{name}:{place}",
                conversation=name,
                position=place,
                author=agent.rpartition("/")[2],
                agent=agent,
                target=people[(place + 1) % len(people)],
                role="participant",
                text=text,
                time=START + timedelta(hours=number, minutes=3 * place),
                model=models[number % len(models)] if place % 2 else None,
            )
        )
    title = texts[0][:80] if texts else f"About the garden, {number}"
    return Conversation(id=name, source_format="jsonl", messages=tuple(messages), title=title)


def answers(talk: Conversation) -> Iterator[Evaluation]:
    """A score of each trait for every message, drawn from the message's id."""
    for message in talk.messages:
        random = Random(message.id)
        traits = {trait: round(random.random() ** 2, 3) for trait in TRAITS}
        yield Evaluation(
            message_id=message.id, state="scored", judge=JUDGE, judge_hash=JUDGE_HASH,
            message_hash=text_hash(message.text), traits=traits,
        )  # fmt: skip


def row_of(message: Message, answer: Evaluation) -> Row:
    return Row(
        id=message.id, conversation=message.conversation, position=message.position, time=message.time,
        agent=message.agent, target=message.target, role=message.role, state="scored", traits=answer.traits,
        scale="level", judge=JUDGE, judge_hash=JUDGE_HASH,
    )  # fmt: skip


def finding_of(talk: Conversation, number: int) -> Finding:
    """A finding over messages of the first speaker, by one of the shipped rules that reads sequences."""
    rules = [rule for rule in all_rules() if rule.file.reading is not None]
    rule = rules[number % len(rules)]
    own = [message for message in talk.messages if message.agent == talk.messages[0].agent][:4]
    names = [stage.name for stage in rule.file.reading.stages] if rule.file.reading else [""]
    stages = [(names[min(place, len(names) - 1)], message.id) for place, message in enumerate(own)]
    quotes = tuple(
        Quote(message_id=m.id, text=m.text[:120], start=0, end=len(m.text[:120]), sha256=text_hash(m.text)) for m in own
    )
    confidence = (None, 0.92, 0.71, 0.44, 0.3)[number % 5]
    return Finding(
        finding_id=hashlib.sha256(f"{talk.id} {number}".encode()).hexdigest()[:32],
        pattern=rule.pattern,
        title=rule.file.title,
        level=LEVELS[number % len(LEVELS)],
        rule_hash=rule.hash,
        agent=own[0].agent,
        target=own[0].target,
        message_ids=tuple(message.id for message in own),
        message_conversations=(talk.id,) * len(own),
        stages=tuple(stages),
        start=own[0].time,
        end=own[-1].time,
        strength=0.7,
        measures={"strength": 0.7},
        conversations=(talk.id,),
        quotes=quotes,
        judges=(JUDGE,),
        confidence=confidence,
        chance=0.012,
        stability=0.8,
        replicas=100,
        shuffles=(11, 999),
        notes=("read in the sequence of messages; the best innocent reading: an old friend who is tired",),
    )


def lead_of(talk: Conversation, rank: int) -> Lead:
    first = talk.messages[0]
    return Lead(
        id=hashlib.sha256(f"lead {talk.id}".encode()).hexdigest(), rank=rank, kind="conversation", agent=first.agent,
        conversation=talk.id, message_ids=(first.id,), message_conversations=(talk.id,), score=9.0 / rank,
        reason="Its messages stand out from the others of this run in the sum of small signs.",
    )  # fmt: skip


def claim_of(talk: Conversation, state: str = "contradicted") -> LedgerClaim:
    message = talk.messages[-1]
    words = message.text[:60]
    sentence = Quote(message_id=message.id, text=words, start=0, end=len(words), sha256=text_hash(message.text))
    return LedgerClaim(
        conversation=talk.id, message_id=message.id, position=message.position, agent=message.agent, time=message.time,
        kind="tests", object="tests", sentence=sentence, state=state, reason="the output shows otherwise",  # type: ignore[arg-type]
    )  # fmt: skip


def fill(
    place: Path | str, conversations: int, size: int, findings: int, texts: Sequence[str] = (), leads: int = 3
) -> list[Finding]:
    """Make a store of so many conversations of ``size`` messages each; ``texts`` are spread over the first ones."""
    talks = [conversation(n, size, texts[n * size : (n + 1) * size]) for n in range(conversations)]
    made = [finding_of(talks[number % conversations], number) for number in range(findings)]
    with open_store(place) as store:
        for talk in talks:
            scans = tuple(Scan(message_id=message.id) for message in talk.messages)
            store.put_conversation(talk, scans, ThreadScan(conversation=talk.id))
        for start in range(0, conversations, 500):
            scored = [(talk, list(answers(talk))) for talk in talks[start : start + 500]]
            store.put_answers((talk.id, each) for talk, own in scored for each in own)
            store.append(row_of(m, a) for talk, own in scored for m, a in zip(talk.messages, own, strict=True))
        store.append((), made)
        store.put_leads((), [lead_of(talk, rank) for rank, talk in enumerate(talks[:leads], 1)])
        store.put_claims(
            (), [claim_of(talk, state) for talk, state in zip(talks, ("contradicted", "backed"), strict=False)]
        )
    return made
