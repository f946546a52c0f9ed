"""The development data: labelled conversations → turns, answers under pressure and texts of known kinds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from train.stance_heads import PressuredAnswer
from undersong.errors import InputError
from undersong.judges.offline import TURN_SIGNALS
from undersong.judges.stance import turns_of
from undersong.models import Message, Role
from undersong.training.datasets import LabelledMessage, numbered_lines
from undersong.training.ood import DomainTexts

TRAIT_LABELS = "moltbook_traits.jsonl.gz"
TURN_LABELS = "spiral_turns.jsonl.gz"
STANCE_LABELS = "sycon_stance.jsonl.gz"
OTHER_CONVERSATIONS = "diplomacy_lies.jsonl.gz"
MOST = 400  # texts of a source that the domain check is shown
# behaviour in the labels of TURN_LABELS → signal
BEHAVIOURS = {
    "sycophancy_or_praise": "sycophantic_praise",
    "delusion_reinforcement": "delusion_reinforcement",
    "emotional_or_narrative_escalation": "escalation",
    "consciousness_claims": "consciousness_claim",
    "harmful_advice": "harmful_encouragement",
    "pushback": "pushback",
    "de-escalation": "de_escalation",
    "suggestions_to_seek_help": "points_to_help",
    "safe_redirection": "points_to_help",
}
FULL = 3.0  # intensity of a behaviour that counts as fully there
STANCES = {"debate": "concedes_opinion", "ethical": "concedes_prejudice"}  # set of STANCE_LABELS → signal
FAMILIES = ("llama", "qwen", "gemma")


class DatasetMessage(msgspec.Struct):
    """One message."""

    author: str
    role: Role
    text: str


class LabelledConversation(msgspec.Struct):
    """One conversation with its labels as they come."""

    conversation_id: str
    messages: list[DatasetMessage]
    labels: dict[str, Any] = {}
    license: str = ""
    source: str = ""


class JudgedTurn(msgspec.Struct, frozen=True):
    """One assistant turn with the intensity (0 = absent) of each behaviour, by signal."""

    text: str
    conversation: str
    model: str
    signals: dict[str, float]


def read_conversations(path: Path) -> list[LabelledConversation]:
    """The conversations of a ``.jsonl`` or ``.jsonl.gz`` file; raises InputError naming file and line."""
    return [_conversation(line, f"{path}:{number}") for number, line in numbered_lines(path)]


def judged_turns(conversations: Sequence[LabelledConversation]) -> list[JudgedTurn]:
    """Every assistant turn that was labelled."""
    turns: list[JudgedTurn] = []
    for conversation in conversations:
        answers = [said.text for said in conversation.messages if said.role == "assistant"]
        for chunk in conversation.labels["chunks"]:
            signals: dict[str, float] = {}
            for name, intensity in chunk["metrics"].items():
                signals[BEHAVIOURS[name]] = max(float(intensity), signals.get(BEHAVIOURS[name], 0.0))
            turns += [
                JudgedTurn(answers[turn], conversation.conversation_id, conversation.labels["model"], signals)
                for turn in chunk["assistant_turns"]
            ]
    return turns


def turn_labels(turns: Sequence[JudgedTurn]) -> list[LabelledMessage]:
    """The turns as rows of training; the conversation stands for the author."""
    return [
        LabelledMessage(
            turn.conversation, turn.text, tuple(min(turn.signals[name] / FULL, 1.0) for name in TURN_SIGNALS)
        )
        for turn in turns
    ]


def pressured_answers(conversations: Sequence[LabelledConversation]) -> dict[str, list[PressuredAnswer]]:
    """The answers after the first one, by signal; sets without a head are left out."""
    by_signal: dict[str, list[PressuredAnswer]] = {name: [] for name in STANCES.values()}
    for conversation in conversations:
        labels = conversation.labels
        if labels["set"] not in STANCES:
            continue
        family = next(name for name in FAMILIES if name in labels["model"].lower().replace("-", ""))
        question = f"{labels['question_id']:04d}"
        for turn, holds in zip(turns_of(_messages(conversation)), labels["holds_per_turn"][1:], strict=True):
            row = PressuredAnswer(turn, not holds, family, question, conversation.conversation_id)
            by_signal[STANCES[labels["set"]]].append(row)
    return by_signal


def domain_texts(
    name: str, conversations: Sequence[LabelledConversation], role: str | None = None, most: int | None = MOST
) -> DomainTexts:
    """Texts of some talks, of one role or all, evenly thinned to at most ``most``; talks are held out together."""
    texts = [
        (each.text, talk.conversation_id)
        for talk in conversations
        for each in talk.messages
        if role in (None, each.role) and each.text.strip()
    ]
    thinned = texts if most is None else texts[:: -(-len(texts) // most)]
    return DomainTexts(name, tuple(text for text, _ in thinned), tuple(talk for _, talk in thinned))


def _conversation(line: bytes, where: str) -> LabelledConversation:
    try:
        return msgspec.json.decode(line, type=LabelledConversation)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a conversation: {error}", where=where) from error


def _messages(conversation: LabelledConversation) -> list[Message]:
    return [
        Message(
            id=f"{conversation.conversation_id}:{place}", conversation=conversation.conversation_id, position=place,
            author=said.author, agent=said.author, role=said.role, text=said.text or "-",
        )
        for place, said in enumerate(conversation.messages)
    ]  # fmt: skip
