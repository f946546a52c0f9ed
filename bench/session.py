"""Answers under pressure and drift: the heads and the whole detector, on families and questions that took no part.

python -m bench.session --data DIR [--part stance|drift|detector|elsewhere]...

DIR, or UNDERSONG_DATA, holds ``sycon_stance.jsonl.gz`` and, for the last part, ``spiral_turns.jsonl.gz``. Every score
of the first three parts is by a head that saw neither the model family nor the question. AUC with 95 % intervals over
resampled questions, shares with Clopper-Pearson intervals.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mechanisms import records, talk
from offline_tables import header, interval, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from train.development import STANCE_LABELS, TURN_LABELS, pressured_answers, read_conversations
from train.stance_heads import PressuredAnswer, curve, train
from undersong.judges.stance import with_stance
from undersong.ml.static_vectors import load_vectors
from undersong.models import Row, SessionVerdict
from undersong.routing.budget import clopper_pearson
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict
from undersong.verdict.detectors.instability import exchanges
from undersong.verdict.transcript import Transcript

SETS = {"debate": "concedes_opinion", "ethical": "concedes_prejudice", "falsep": None}
RATES = (0.01, 0.02, 0.05, 0.1)  # shares of answers that hold, at which limits are shown
MECHANISM = "epistemic_instability"


class Unseen(NamedTuple):
    """The labelled answers of a head, and their scores by heads that saw neither family nor question."""

    rows: list[PressuredAnswer]
    scores: npt.NDArray[np.float64]

    @property
    def concedes(self) -> npt.NDArray[np.bool_]:
        """What the labels say."""
        return np.array([each.concedes for each in self.rows])


@cache
def unseen(data: Path) -> dict[str, Unseen]:
    """Per head, its set with held-out scores on the scale of the shipped heads."""
    sets = pressured_answers(read_conversations(data / STANCE_LABELS))
    _, raw = train(dict(sets), load_vectors())
    result = {}
    for name, rows in sets.items():
        slope, bias = curve(raw[name], np.array([each.concedes for each in rows]))
        result[name] = Unseen(rows, np.round(1 / (1 + np.exp(-(slope * raw[name] + bias))), 3))
    return result


def stance(data: Path, seed: int) -> None:
    """A turn: does the answer hold or give way? And the limits that a share of the answers that hold would reach."""
    print(header("", "stance head", "length", "gives way", *(f"limit at {rate:.0%}" for rate in RATES)))
    for name, own in unseen(data).items():
        length = np.array([len(each.turn.answer.text) for each in own.rows], dtype=float)
        asked = [each.question for each in own.rows]
        figures = (interval(own.concedes, scores, asked, seed) for scores in (own.scores, length))
        limits = (f"{np.quantile(own.scores[~own.concedes], 1 - rate):.3f}" for rate in RATES)
        print(row(name, *figures, f"{own.concedes.mean():.2f} of {len(own.rows)}", *limits))


def drift(data: Path, seed: int) -> None:
    """A conversation as it comes: does a position that was held get lost? By the scores of its answers."""
    labels = {each.conversation_id: each.labels for each in read_conversations(data / STANCE_LABELS)}
    print(header("", "highest score", "rise over the second answer", "length of the answers", "drifts"))
    for name, own in unseen(data).items():
        talks: dict[str, list[int]] = {}
        for place, labelled in enumerate(own.rows):
            talks.setdefault(labelled.conversation, []).append(place)
        for start in ("as it comes", "where the first answer holds"):
            chosen = {key: at for key, at in talks.items() if start[0] == "a" or labels[key]["holds_per_turn"][0]}
            drifts = np.array([bool(labels[key]["drift"]) for key in chosen])
            asked = [own.rows[at[0]].question for at in chosen.values()]
            top = np.array([own.scores[at].max() for at in chosen.values()])
            rise = np.array([own.scores[at].max() - own.scores[at[0]] for at in chosen.values()])
            length = np.array([float(sum(len(own.rows[i].turn.answer.text) for i in at)) for at in chosen.values()])
            figures = (interval(drifts, scores, asked, seed) for scores in (top, rise, length))
            print(row(f"{name}, {start}", *figures, f"{drifts.mean():.2f} of {len(drifts)}"))


def detector(data: Path, seed: int) -> None:  # noqa: ARG001 - the same signature for every part
    """The whole detector: which answers take points or are candidates, and which of them are labelled as giving way."""
    print(header("", "right of those found", "found of those that give way", "of those that hold, found", "always"))
    for name, signal in SETS.items():
        results = list(_verdicts(data, name, signal))
        for kind in ("points", "points or candidate"):
            answers = [(said[kind], gave) for _, each in results for said, gave in each]
            talks = [(any(said[kind] for said, _ in each), drifts) for drifts, each in results]
            print(row(f"{name}: {kind}, answers", *_shares(answers)))
            print(row(f"{name}: {kind}, conversations that drift", *_shares(talks)))


def elsewhere(data: Path, seed: int) -> None:  # noqa: ARG001 - the same signature for every part
    """Companion chats, whose answers have no such labels: how often it would speak at all, with the shipped heads."""
    sessions = pushed = led = taken = candidates = 0
    for record in records(data / TURN_LABELS, None):
        conversation = talk(record)
        rows = [
            Row(id=each.id, conversation=conversation.id, position=each.position, state="scored", judge="bench")
            for each in conversation.messages
        ]
        scans, thread = scan_conversation(conversation, load_book())
        verdict = session_verdict(conversation, scans, thread, with_stance(rows, conversation))
        kinds = [each.kind for each in exchanges(Transcript(conversation, scans)) if not each.news]
        sessions += 1
        pushed += kinds.count("objection")
        led += kinds.count("leading")
        taken += sum(each.mechanism == MECHANISM for each in verdict.deductions)
        candidates += sum(each.code == MECHANISM for each in verdict.moments)
    print(f"{sessions} sessions: {pushed} answers to objections, {led} to leading questions, both without news;")
    print(f"points are taken for {taken} of them, {candidates} are candidates")


def _verdicts(data: Path, name: str, signal: str | None) -> Iterator[tuple[bool, list[tuple[dict[str, bool], bool]]]]:
    """Whether each conversation drifts by its label, and its answers: what is said, and whether they give way."""
    scores: dict[str, list[float]] = {}
    if signal is not None:
        for labelled, score in zip(unseen(data)[signal].rows, unseen(data)[signal].scores.tolist(), strict=True):
            scores.setdefault(labelled.conversation, []).append(score)
    for record in records(data / STANCE_LABELS, None):
        labels = record["labels"]
        if labels["set"] == name:
            signals = {signal: scores[record["conversation_id"]]} if signal else {}
            yield bool(labels["drift"]), _answers(record, signals)


def _answers(record: Mapping[str, Any], signals: Mapping[str, list[float]]) -> list[tuple[dict[str, bool], bool]]:
    conversation = talk(record)
    answers = [each for each in conversation.messages if each.role == "assistant"]
    rows = [
        Row(id=each.id, state="scored", judge="bench", signals={name: own[place] for name, own in signals.items()})
        for place, each in enumerate(answers[1:])
    ]
    scans, thread = scan_conversation(conversation, load_book())
    marked = _said(session_verdict(conversation, scans, thread, rows))
    holds = record["labels"]["holds_per_turn"]
    return [
        ({"points": each.id in marked[0], "points or candidate": each.id in marked[0] | marked[1]}, not held)
        for each, held in list(zip(answers, holds, strict=False))[1:]
    ]


def _said(verdict: SessionVerdict) -> tuple[set[str], set[str]]:
    points = {each.message_id for each in verdict.deductions if each.mechanism == MECHANISM}
    return points, {each.message_id for each in verdict.moments if each.code == MECHANISM}


def _shares(pairs: list[tuple[bool, bool]]) -> list[str]:
    """Right of the found, found of the right, found of the wrong, and what "always" would be right in."""
    predicted, right = (sum(each[part] for each in pairs) for part in (0, 1))
    both = sum(one and other for one, other in pairs)
    cells = [_share(both, predicted), _share(both, right), _share(predicted - both, len(pairs) - right)]
    return [*cells, f"{right / len(pairs):.2f} of {len(pairs)}"]


def _share(good: int, of: int) -> str:
    low, high = clopper_pearson(good, of) if of else (0.0, 1.0)
    return f"{good / of if of else 0:.2f} [{low:.2f}, {high:.2f}] of {of}"


PARTS = {"stance": stance, "drift": drift, "detector": detector, "elsewhere": elsewhere}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be given several times")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    for name in options.part or PARTS:
        print(f"\n## {name}: {PARTS[name].__doc__}", flush=True)
        PARTS[name](Path(options.data), options.seed)


if __name__ == "__main__":
    main()
