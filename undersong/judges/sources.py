"""The development data: conversations with labels, one JSON object a line → what the heads are trained on."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from undersong.errors import InputError
from undersong.judges.domain_training import Source
from undersong.judges.labels import Labelled
from undersong.judges.offline import TURN_SIGNALS
from undersong.judges.stance import turns_of
from undersong.judges.stance_training import Pressed
from undersong.models import Message, Role

TRAIT_LABELS = "moltbook_traits.jsonl.gz"
TURN_LABELS = "spiral_turns.jsonl.gz"
STANCE_LABELS = "sycon_stance.jsonl.gz"
OTHER_TALK = "diplomacy_lies.jsonl.gz"
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


class Said(msgspec.Struct):
    """One message."""

    author: str
    role: Role
    text: str


class Talk(msgspec.Struct):
    """One conversation with its labels as they come."""

    conversation_id: str
    messages: list[Said]
    labels: dict[str, Any] = {}
    license: str = ""
    source: str = ""


class JudgedTurn(msgspec.Struct, frozen=True):
    """One assistant turn with the intensity (0 = absent) of each behaviour, by signal."""

    text: str
    conversation: str
    model: str
    signals: dict[str, float]


def read_talks(path: Path) -> list[Talk]:
    """The conversations of a ``.jsonl`` or ``.jsonl.gz`` file; raises InputError naming file and line."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            return [_talk(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), remedy="check the name and the file") from error


def judged_turns(talks: Sequence[Talk]) -> list[JudgedTurn]:
    """Every assistant turn that was labelled."""
    found: list[JudgedTurn] = []
    for talk in talks:
        answers = [said.text for said in talk.messages if said.role == "assistant"]
        for chunk in talk.labels["chunks"]:
            signals: dict[str, float] = {}
            for name, intensity in chunk["metrics"].items():
                signals[BEHAVIOURS[name]] = max(float(intensity), signals.get(BEHAVIOURS[name], 0.0))
            found += [
                JudgedTurn(answers[turn], talk.conversation_id, talk.labels["model"], signals)
                for turn in chunk["assistant_turns"]
            ]
    return found


def turn_labels(turns: Sequence[JudgedTurn]) -> list[Labelled]:
    """The turns as rows of training; the conversation stands for the author."""
    return [
        Labelled(turn.conversation, turn.text, tuple(min(turn.signals[name] / FULL, 1.0) for name in TURN_SIGNALS))
        for turn in turns
    ]


def pressed(talks: Sequence[Talk]) -> dict[str, list[Pressed]]:
    """The answers after the first one, by signal; sets without a head are left out."""
    found: dict[str, list[Pressed]] = {name: [] for name in STANCES.values()}
    for talk in talks:
        labels = talk.labels
        if labels["set"] not in STANCES:
            continue
        family = next(name for name in FAMILIES if name in labels["model"].lower().replace("-", ""))
        question = f"{labels['question_id']:04d}"
        for turn, holds in zip(turns_of(_messages(talk)), labels["holds_per_turn"][1:], strict=True):
            row = Pressed(turn, not holds, family, question, talk.conversation_id)
            found[STANCES[labels["set"]]].append(row)
    return found


def source(name: str, talks: Sequence[Talk], role: str | None = None, most: int | None = MOST) -> Source:
    """Texts of some talks, of one role or all, evenly thinned to at most ``most``; talks are held out together."""
    said = [
        (each.text, talk.conversation_id)
        for talk in talks
        for each in talk.messages
        if role in (None, each.role) and each.text.strip()
    ]
    kept = said if most is None else said[:: -(-len(said) // most)]
    return Source(name, tuple(text for text, _ in kept), tuple(talk for _, talk in kept))


def _talk(line: bytes, where: str) -> Talk:
    try:
        return msgspec.json.decode(line, type=Talk)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a conversation: {error}", where=where) from error


def _messages(talk: Talk) -> list[Message]:
    return [
        Message(
            id=f"{talk.conversation_id}:{place}", conversation=talk.conversation_id, position=place,
            author=said.author, agent=said.author, role=said.role, text=said.text or "-",
        )
        for place, said in enumerate(talk.messages)
    ]  # fmt: skip
