"""Make a store to try reviewing on: ``python -m bench.talks.trial OUT``.

Audits some conversations of ``dev`` and ``test`` with ``--read both --judge file:OUT/judge``, answers the questions
with what blind readers gave of every message and of some speakers' whole sequences, and audits again. The conversations
are chosen, and the prevalence is set far too high, so that a good part of the findings above .5 is wrong.
``OUT/truth.jsonl`` says beside each finding whether it names what was planted; whoever reviews must not have seen it.
Prints the command that shows the store.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.sequence_tokens import Talks
from bench.talks.score import one_name, read_lines
from undersong.models import TRAITS, Finding
from undersong.models.finding import SURE
from undersong.stores.sqlite import SQLiteStore

HERE = Path(__file__).parent
SETS = ("dev", "test")
READ = frozenset({  # of these the answers about whole sequences are given
    "dev009", "dev030", "dev046", "dev048", "dev053", "dev067", "dev068", "test007", "test029", "test050",
})  # fmt: skip
UNREAD = frozenset({  # of these the rules alone say what they find; in ten nothing was planted
    "dev013", "dev015", "dev018", "dev021", "dev025", "dev045", "dev047", "dev071", "dev079", "dev088", "dev100",
    "dev101", "test005", "test015", "test023", "test024", "test027", "test028", "test033", "test036", "test044",
    "test045", "test046", "test051", "test059",
})  # fmt: skip
PREVALENCE = 0.85
ROUNDS = 4  # audits until nothing new is asked: sequences are chosen by what is known of the messages
_MESSAGE = re.compile(r'# Message to read\nBEGIN DATA \w+\n\[\w+: [^\n]*?\] ("(?:[^"\\]|\\.)*")\n')
_CONTROL = re.compile(r"word number (\d+) of this list: ([a-z, ]+)\?")
Json = dict[str, Any]


def main() -> None:
    """Ask and answer until nothing is asked, then write the truth beside it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True)
    messages = [each for name in SETS for each in read_lines(HERE / name / "messages.jsonl")]
    write_lines(out / "conversations.jsonl", [each for each in messages if each["conversation"] in READ | UNREAD])
    readers = [BlindReaders(HERE / name) for name in SETS]
    for _ in range(ROUNDS):
        audit(out)
        for path in sorted((out / "judge").glob("questions-*.jsonl")):
            answers = [answer for each in read_lines(path) for answer in _answers(readers, each)]
            write_lines(path.with_name(path.name.replace("questions", "answers")), answers)
    truth = list(truth_of(out / "trial.db"))
    write_lines(out / "truth.jsonl", truth)
    likely = [row["right"] for row in truth if (row["confidence"] or 0) >= SURE]
    print(f"{len(truth)} findings; {len(likely)} with a confidence of .5 or more, {sum(likely)} of them right")
    print(f"undersong serve {out / 'trial.db'}")


def write_lines(path: Path, rows: Sequence[Json]) -> None:
    """Objects as JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def audit(out: Path) -> None:
    """An audit of the conversations, into the store and the report in ``out``."""
    options = ("--read", "both", "--all", "--judge", f"file:{out / 'judge'}", "--prevalence", str(PREVALENCE))
    command = [sys.executable, "-m", "undersong", "audit", str(out / "conversations.jsonl"), *options]
    subprocess.run(
        [*command, "--out", str(out / "trial"), "--draws", "199"],
        stdout=subprocess.DEVNULL,
        check=False,  # while answers are missing its exit code says so
    )


class BlindReaders(Talks):
    """What blind readers gave of the messages and sequences of a set, as answers to a judge's questions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        by_id = {each["id"]: each for each in read_lines(folder / "readings.jsonl")}
        messages = (each for own in self.messages.values() for each in own)
        self._by_text = {each["text"].strip(): by_id[each["id"]] for each in messages if each["id"] in by_id}

    def answer(self, question: Json) -> Json | None:
        """The answer to a question about a message or a speaker; None for one of another set, or another kind."""
        asked = _MESSAGE.search(question["question"])
        if asked is None:
            return super().answer(question) if self._read(question["question"]) else None
        reading = self._by_text.get(json.loads(asked[1]).strip())
        if reading is None:
            return None
        names = zip(TRAITS, reading["traits"], strict=True)
        answer = {
            "control": control(question["question"]),
            "traits": dict(names),
            "indicators": [_quoted(each) for each in reading["indicators"]],
            "mechanisms": [_quoted(each) for each in reading["mechanisms"]],
            "acts": [],
            "stance": {"position": reading["stance"], "claim": ""},
            "reasons": [{"trait": trait, "reason": reason} for trait, reason in reading["reasons"]],
        }
        return {"id": question["id"], "answer": answer}

    def _read(self, question: str) -> bool:
        texts = (own[0]["text"] for name, own in self.messages.items() if name in READ)
        return any(json.dumps(text, ensure_ascii=False) in question for text in texts)


def _answers(readers: Sequence[BlindReaders], question: Json) -> list[Json]:
    answers = (reader.answer(question) for reader in readers)
    return [answer for answer in answers if answer is not None][:1]


def _quoted(seen: Sequence[Any]) -> Json:
    quote, name, sure = seen
    return {"quote": quote, "id": name, "confidence": sure}


def control(question: str) -> str:
    """The word that a question asks for, to see that it was read."""
    asked = _CONTROL.search(question)
    return asked[2].split(", ")[int(asked[1]) - 1] if asked else ""


def truth_of(path: Path) -> Iterator[Json]:
    """Each finding of a store and whether it names the planted speaker and shape."""
    truth = {row["conversation"]: row for name in SETS for row in read_lines(HERE / name / "truth.jsonl")}
    with SQLiteStore(path, read_only=True) as store:
        for finding in store.findings():
            planted = truth[finding.conversations[0]]
            yield {
                "finding": finding.finding_id,
                "pattern": finding.pattern,
                "agent": finding.agent,
                "confidence": finding.confidence,
                "right": _names(finding, planted),
                "kind": planted["kind"],
                "shape": planted["shape"],
                "why": planted["why"],
            }


def _names(finding: Finding, planted: Json) -> bool:
    """Whether a finding is of the planted speaker, and of the planted shape or of the same by another name."""
    if planted["kind"] != "planted" or finding.agent.rpartition("/")[2] != planted["agent"]:
        return False
    return one_name(finding.pattern) == one_name(planted["shape"])


if __name__ == "__main__":
    main()
