"""What a finding costs end to end, in tokens, where whole sequences are read: ``python -m bench.sequence_tokens``.

Audits the development conversations of ``bench/talks`` with ``--judge file:FOLDER``, puts the answers that blind
readers gave of them beside the questions, and audits again. Bytes are counted, and tokens are a fourth of them, as
everywhere where no model says more (``prices.yaml``). Instructions and schema are the same in every question, so that a
provider's cache charges a tenth of them or less.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.talks.score import read_lines
from undersong.judges.llm.pricing import load_prices
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options

DEV = Path(__file__).parent / "talks" / "dev"
_ASKED = re.compile(r"Read the messages of speaker (S\d+) .*?word number (\d+) of this list: ([a-z, ]+)\?", re.DOTALL)
Json = dict[str, Any]


def main() -> None:
    """Ask, answer, audit again, and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audited(folder)
        asked = [(path, read_lines(path)) for path in sorted(folder.glob("questions-*.jsonl"))]
        talks = Talks(DEV)
        fixed = sent = answered = count = 0
        for path, questions in asked:
            answers = [line for each in questions if (line := talks.answer(each)) is not None]
            if not answers:  # a question about a flagged place
                continue
            text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in answers)
            path.with_name(path.name.replace("questions", "answers")).write_text(text, encoding="utf-8")
            answers_by_id = {each["id"] for each in answers}
            for question in (each for each in questions if each["id"] in answers_by_id):
                fixed += sum((folder / question[part]).stat().st_size for part in ("instructions", "schema"))
                sent, count = sent + len(question["question"].encode()), count + 1
            answered += sum(len(json.dumps(each["answer"], ensure_ascii=False).encode()) for each in answers)
        findings, leads = audited(folder)
    show(count, fixed, sent, answered, findings, leads)


def audited(folder: Path) -> tuple[int, int]:
    """An audit of the conversations by whole sequences: how many findings it has, and how many are leads."""
    options = Options(judge=f"file:{folder}", read="sequences", effort=None)
    case, _ = audit([DEV / "messages.jsonl"], folder / "undersong.db", options)
    return sum(not each.is_lead for each in case.findings), sum(each.is_lead for each in case.findings)


def show(count: int, fixed: int, sent: int, answered: int, findings: int, leads: int) -> None:
    """Print the tokens of so many questions, and those of each finding."""
    unit = load_prices().tokens.bytes_each
    whole = (fixed + sent + answered) / unit
    print(f"{count} questions about whole sequences, tokens (bytes / {unit}):")
    print(f"  in  {(fixed + sent) / unit:,.0f}, of them {fixed / unit:,.0f} instructions and schema, the same in each")
    print(f"  out {answered / unit:,.0f}")
    print(f"{findings} findings and {leads} leads: {whole / max(findings, 1):,.0f} tokens a finding,")
    print(f"  {(sent + answered) / unit / max(findings, 1):,.0f} without the instructions, which a cache holds")


class Talks:
    """The conversations of a set, and what readers answered of each speaker."""

    def __init__(self, folder: Path) -> None:
        self.messages: dict[str, list[Json]] = {}
        for message in read_lines(folder / "messages.jsonl"):
            self.messages.setdefault(message["conversation"], []).append(message)
        self.readings = {(each["conversation"], each["agent"]): each for each in read_lines(folder / "sequences.jsonl")}

    def answer(self, question: Json) -> Json | None:
        """The line of an answers file for a question about a speaker; None for another kind of question."""
        asked = _ASKED.search(question["question"])
        if asked is None:
            return None
        numbered = list(_numbered(question["question"]))
        talk = next(name for name, own in self.messages.items() if _holds(own, [text for *_, text in numbered]))
        agent = next(author for speaker, author, _ in numbered if speaker == asked[1])
        texts, by_id = [text for *_, text in numbered], {each["id"]: each["text"] for each in self.messages[talk]}
        shapes = [_shape(each, texts, by_id) for each in self.readings[talk, agent]["shapes"]]
        control = asked[3].split(", ")[int(asked[2]) - 1]
        return {"id": question["id"], "answer": {"control": control, "shapes": shapes}}


def _numbered(question: str) -> Iterator[tuple[str, str, str]]:
    """Speaker, author and text of each message that a question shows."""
    for line in question.splitlines():
        shown = re.match(r'\d+ (S\d+) ("(?:[^"\\]|\\.)*")[^:]*(?::\d\d)?[^"]*: ("(?:[^"\\]|\\.)*")$', line)
        if shown is not None:
            yield shown[1], json.loads(shown[2]), json.loads(shown[3])


def _holds(messages: Sequence[Json], texts: Sequence[str]) -> bool:
    own = {each["text"].strip() for each in messages}
    return bool(texts) and all(text.strip() in own for text in texts)


def _shape(read: Json, texts: Sequence[str], by_id: dict[str, str]) -> Json:
    evidence = [
        {"stage": each["stage"], "message": 1 + texts.index(by_id[each["message"]]), "quote": each["quote"]}
        for each in read["evidence"]
    ]
    return {**read, "evidence": evidence}


if __name__ == "__main__":
    main()
