"""How often a label is set on messages that do not deserve it: ``python -m bench.labels [--data DIR] [--write]``.

Innocent talk: ``ordinary_talk.jsonl.gz`` of DIR (or UNDERSONG_DATA) without the people who test an assistant, the
real coding sessions, posts of agents whose labels have no negative trait above .25, and the conversations of
``bench/talks`` (dev and more) in which nothing was planted. Every label there counts as false, an honest admission of
a fault as well. Labels by signal are counted on the turns of companion chats whose labels lack the behaviour, by heads
that did not see the model. ``--write`` makes the table that decides which labels are shown. Printed: each label before
the table and with it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.talks.score import read_lines
from train.development import TURN_LABELS, judged_turns, read_conversations, turn_labels
from undersong.datafiles.verdict_config import annotations_config, distress_config, guns, mechanisms
from undersong.datafiles.yaml_loader import RULES
from undersong.judges.offline import SHIPPED, TURN_SIGNALS, load_artefacts
from undersong.judges.protocol import open_judge
from undersong.ml.prototypes import Prototypes
from undersong.ml.trait_heads import Curves
from undersong.models import NEGATIVE_TRAITS, Finding, Message, Moment
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options, silent
from undersong.pipeline.stages import AuditState, ingest_and_scan, read_threads
from undersong.scan import load_book
from undersong.stores.sqlite import temporary_store
from undersong.training.trait_heads import TraitCorpus, calibration, out_of_fold
from undersong.verdict import session_verdict
from undersong.verdict.labels import cell_of, is_measured, may_stand

TALKS = Path(__file__).parent / "talks"
TESTERS = "people testing an assistant"
CLEAN = 0.25  # the highest negative trait of a post that counts as innocent
TABLE = RULES / "session" / "label_rates.yaml"
Cells = dict[str, tuple[int, int]]  # cell → false, messages
Json = dict[str, Any]


class Labelled(NamedTuple):
    """A message of innocent talk: where it is from, its cell, and the labels that were set before the table."""

    source: str
    cell: str
    labels: tuple[tuple[Moment, bool], ...]  # and whether the table shows it


def innocent(data: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each source; what has to be unpacked or chosen is written into ``folder``."""
    talks = [json.loads(line) for line in _unpacked(data / "ordinary_talk.jsonl.gz")]
    for kind in sorted({talk["kind"] for talk in talks if not talk["kind"].startswith(TESTERS)}):
        yield kind, _written(folder / f"{kind}.jsonl", (json.dumps(talk) for talk in talks if talk["kind"] == kind))
    posts = [json.loads(line) for line in _unpacked(data / "moltbook_traits.jsonl.gz")]
    clean = [post for post in posts if max(post["labels"]["traits"][trait] for trait in NEGATIVE_TRAITS) <= CLEAN]
    yield "posts of agents", _written(folder / "posts.jsonl", map(json.dumps, clean))
    yield "coding sessions", _written(folder / "coding.jsonl", _unpacked(data / "sessions" / "real_dev.jsonl.gz"))
    for name in ("dev", "more"):
        planted = {
            each["conversation"] for each in read_lines(TALKS / name / "truth.jsonl") if each["kind"] == "planted"
        }
        rest = [each for each in read_lines(TALKS / name / "messages.jsonl") if each["conversation"] not in planted]
        yield f"written talk, {name}", _written(folder / f"{name}.jsonl", map(json.dumps, rest))


def _unpacked(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def _written(path: Path, lines: Iterator[str] | Sequence[str] | map[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def labelled(source: str, path: Path) -> Iterator[Labelled]:
    """Every message of a file but those of tools, with the labels that could stand."""
    options, run = Options(effort=None), AuditState()
    with temporary_store() as store:
        judge = open_judge("offline", store)
        corpus = ingest_and_scan(path, store, load_book(), options, silent)
        for thread, rows in read_threads(corpus, store, judge, options, silent, run):
            verdict = session_verdict(thread.conversation, thread.scans, thread.thread, rows, all_labels=True)
            by_message: dict[str, list[tuple[Moment, bool]]] = {}
            texts = {message.id: message for message in thread.conversation.messages}
            for label in verdict.moments:
                message, profile = texts[label.message_id], verdict.profile
                if may_stand(label, message):
                    shown = is_measured(label, message, profile)
                    by_message.setdefault(message.id, []).append((label, shown))
            for message in thread.conversation.messages:
                if message.role not in ("tool", "system"):
                    labels = tuple(by_message.get(message.id, ()))
                    yield Labelled(source, cell_of(message, verdict.profile), labels)


def by_words(messages: Sequence[Labelled], codes: Sequence[str]) -> dict[str, Cells]:
    """Code → cell → how many messages have the label, of how many; also signals of answers that give in."""
    of = Counter(message.cell for message in messages if not message.cell.startswith("user "))  # no label is theirs
    false = Counter((label.code, message.cell) for message in messages for label, _ in message.labels)
    return {code: {cell: (false[code, cell], of[cell]) for cell in sorted(of)} for code in codes}


def by_signal(data: Path) -> dict[str, Cells]:
    """The same for labels by signal, on the turns of companion chats that lack the behaviour."""
    turns = judged_turns(read_conversations(data / TURN_LABELS))
    corpus = TraitCorpus(turn_labels(turns), TURN_SIGNALS, [turn.model for turn in turns])
    raw = out_of_fold(corpus)
    heads = Curves(calibration(raw, corpus.labels, TURN_SIGNALS))(raw)
    artefacts = load_artefacts(SHIPPED)
    prototypes = Prototypes(artefacts.phrases, artefacts.vectors, artefacts.whitening)
    near = prototypes.score(artefacts.vectors.embed([turn.text for turn in turns])).scores
    columns = [prototypes.ids.index(name) for name in TURN_SIGNALS]
    scores = {name: (heads[:, k] + near[:, columns[k]]) / 2 for k, name in enumerate(TURN_SIGNALS)}
    cells = np.array([_cell(turn.text) for turn in turns])
    table: dict[str, Cells] = {}
    for kind in ("conduct", "protective"):
        config = annotations_config(kind)
        against = np.max([scores[name] for name in config.not_with if name in scores], axis=0)
        for code, rule in config.kinds.items():
            if rule.signal in scores:
                least = config.least if rule.least is None else rule.least
                lacks = np.array([turn.signals[rule.signal] == 0 for turn in turns])
                own = scores[rule.signal]
                set_there = lacks & (own >= least) & (own > against)
                table[code] = {
                    cell: (int((set_there & (cells == cell)).sum()), int((lacks & (cells == cell)).sum()))
                    for cell in sorted(set(cells.tolist()))
                }
    return table


def _cell(text: str) -> str:
    turn = Message(id="t", conversation="c", position=0, author="a", role="assistant", text=text)
    return cell_of(turn, "companion")


def table_text(rates: dict[str, dict[str, Cells]]) -> str:
    """The data file."""
    lines = [
        "# Made by `python -m bench.labels --write`; do not edit it by hand.",
        "why: Of how many messages of innocent talk each label was set on how many, falsely.",
        "misses: Kinds of talk, roles and lengths that are not here; labels are hidden there.",
        "rates:",
    ]
    for basis, codes in rates.items():
        lines.append(f"  {basis}:")
        for code, cells in codes.items():
            lines.append(f"    {code}:")
            lines += [f"      {cell}: [{false}, {messages}]" for cell, (false, messages) in cells.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the false rates, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = list(innocent(arguments.data, Path(folder)))
        messages = [message for name, path in sources for message in labelled(name, path)]
        print_rates(messages)
        for name, path in sources:
            findings: tuple[Finding, ...] = audit(path, options=Options(effort=None))[0].findings
            print(f"{name}: {sum(not each.is_lead for each in findings)} agents named by {len(findings)} findings")
    signals = by_signal(arguments.data)
    for code, cells in signals.items():
        print(f"by signal, {code}: {', '.join(f'{cell} {false}/{of}' for cell, (false, of) in cells.items())}")
    if arguments.write:
        rates = {
            "words": by_words(messages, label_codes()),
            "signal": signals | by_words(messages, ["epistemic_instability"]),
        }
        TABLE.write_text(table_text(rates), encoding="utf-8")
        print(f"written: {TABLE}")


def label_codes() -> list[str]:
    """Every code that a label can have by words."""
    codes = [*guns().kinds, *mechanisms().mechanisms, *annotations_config("conduct").kinds, "epistemic_drift"]
    distress = [code for each in distress_config().conduct.values() for code in each.codes]
    also = [code for each in distress_config().conduct.values() for code in each.also]
    return sorted({*codes, *annotations_config("protective").kinds, *distress, *also})


def print_rates(messages: Sequence[Labelled]) -> None:
    """Each source and each label: on how many messages before the table, and with it."""
    print(f"{'':<34}messages  any label, before and with the table")
    sources = list(dict.fromkeys(message.source for message in messages))
    for source in sources:
        own = [message for message in messages if message.source == source]
        before = sum(bool(message.labels) for message in own)
        after = sum(any(shown for _, shown in message.labels) for message in own)
        print(f"{source:<34}{len(own):>8}  {before:>4} {before / len(own):.2%}  {after:>4} {after / len(own):.2%}")
    names = Counter((label.kind, label.code, label.basis) for message in messages for label, _ in message.labels)
    with_table = Counter(
        (label.kind, label.code, label.basis) for message in messages for label, shown in message.labels if shown
    )
    for name, count in sorted(names.items()):
        print(f"{' '.join(name):<50}{count:>5} {count / len(messages):.3%}  {with_table[name]:>5}")


if __name__ == "__main__":
    main()
