"""How good the offline judge is on what it never saw, where its scores mean anything, and how fast it reads.

python bench/offline.py --data DIR [--part traits|turns|stance|transfer|domain|speed]...

DIR, or UNDERSONG_DATA, holds the development data. Intervals are 95 %, over resampled groups (authors, conversations,
questions). Every figure stands beside the length of the text alone.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import numpy as np
from offline_tables import header, interval, row
from offline_transfer import transfer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from train.development import (
    STANCE_LABELS,
    TRAIT_LABELS,
    TURN_LABELS,
    judged_turns,
    pressured_answers,
    read_conversations,
    turn_labels,
)
from train.stance_heads import train as train_stance
from undersong.judges.offline import SHIPPED, TURN_SIGNALS, load_artefacts
from undersong.judges.protocol import Question, open_judge
from undersong.ml import ood_check as domains
from undersong.ml.prototypes import Prototypes
from undersong.ml.static_vectors import load_vectors
from undersong.ml.trait_heads import FILE, Curves, dump
from undersong.models import Message, Route, Scan
from undersong.training.datasets import LabelledMessage, read_labels
from undersong.training.evaluation import measure
from undersong.training.model_card import table, thresholds, within
from undersong.training.ood import load_genres, messages
from undersong.training.trait_heads import TraitCorpus, calibration, out_of_fold
from undersong.training.triage import train_stacked

FOUR = TURN_SIGNALS[:4]
UNMEASURED = ("recipe", "code_review", "legal")
SIZE = 1024  # characters of a message in the speed measurement
COUNT = 3000  # messages
BATCH = 256
RUNS = 3  # of each timing; the best counts


def traits(data: Path, seed: int) -> None:
    """Agent posts, by author."""
    rows = read_labels(data / TRAIT_LABELS)
    heads, _, unseen = train_stacked(rows, seed)
    quality = measure(rows, unseen, seed)
    print(f"{quality.messages} messages by {quality.authors} authors, {quality.harmful} with a negative trait >= .5")
    print(f"Spearman with the labels, out of fold by author\n\n{table(quality)}\n")
    print(f"{within(quality)}\n\nfixed thresholds, out of fold:\n{thresholds(quality)}\n")
    data_, again = (SHIPPED / FILE).read_bytes(), dump(heads)
    same = "the same bytes" if data_ == again else "NOT the bytes"
    print(f"{FILE}: {hashlib.sha256(data_).hexdigest()[:12]}, {same} that this training gives")


def turns(data: Path, seed: int) -> None:
    """Turns of companion chats, by a model that took no part in training."""
    labelled_turns = judged_turns(read_conversations(data / TURN_LABELS))
    rows, groups = turn_labels(labelled_turns), [turn.model for turn in labelled_turns]
    corpus = TraitCorpus(rows, TURN_SIGNALS, groups)
    raw = out_of_fold(corpus)
    heads = Curves(calibration(raw, corpus.labels, TURN_SIGNALS))(raw)
    artefacts = load_artefacts(SHIPPED)
    prototypes = Prototypes(artefacts.phrases, artefacts.vectors, artefacts.whitening)
    near = prototypes.score(artefacts.vectors.embed([turn.text for turn in labelled_turns])).scores
    length = np.array([len(turn.text) for turn in labelled_turns], dtype=float)
    talks = [turn.conversation for turn in labelled_turns]
    print(
        f"{len(labelled_turns)} turns; heads: leave one model out; prototypes: no label used; both: what a row carries"
    )
    print(header("", "heads", "prototypes", "both", "length"))
    means = []
    for column, name in enumerate(TURN_SIGNALS):
        present = np.array([turn.signals[name] > 0 for turn in labelled_turns])
        own = near[:, prototypes.ids.index(name)]
        scorers = (heads[:, column], own, (heads[:, column] + own) / 2, length)
        figures = [interval(present, scores, talks, seed) for scores in scorers]
        print(row(name, *figures))
        means += [[each.value for each in figures]] if name in FOUR else []
    print(row("mean of the first four", *(f"{value:.3f}" for value in np.mean(means, axis=0))))
    present = np.array([turn.signals["harmful_encouragement"] > 0 for turn in labelled_turns])
    own = near[:, prototypes.ids.index("harmful_encouragement")]
    print(
        row(
            "harmful_encouragement", "", interval(present, own, talks, seed), "", interval(present, length, talks, seed)
        )
    )


def stance(data: Path, seed: int) -> None:
    """Answers under pressure, by families and questions that took no part in training."""
    sets = pressured_answers(read_conversations(data / STANCE_LABELS))
    _, unseen = train_stance(dict(sets), load_vectors())
    print("holds or concedes, unseen family and unseen question; intervals over questions")
    print(header("", "stance head", "length"))
    for name, rows in sets.items():
        concedes = np.array([each.concedes for each in rows])
        length = np.array([len(each.turn.answer.text) for each in rows], dtype=float)
        asked = [each.question for each in rows]
        print(row(name, *(interval(concedes, scores, asked, seed) for scores in (unseen[name], length))))


def domain(data: Path, seed: int) -> None:  # noqa: ARG001 - the same signature for every part
    """How often the check is right: its own held-out rates, and made-up text of kinds it now knows."""
    artefacts = load_artefacts(SHIPPED)
    for kind in artefacts.domain.meta.kinds:
        print(f"{kind.name}: {kind.kept:.1%} of its own texts by held-out authors taken for it; of kinds held out not:")
        print("  " + ", ".join(f"{name} {share:.0%}" for name, share in kind.refused_by.items()))
    first = artefacts.domain.meta.kinds[0].name
    for name in UNMEASURED:
        texts = list(messages(load_genres()[name], 500, "bench"))
        vectors = domains.features(texts, artefacts.vectors.embed(texts).texts, artefacts.whitening)
        print(f"{name}, 500 new messages: {1 - artefacts.domain.kinds(vectors)[first].mean():.1%} unmeasured")


def speed(data: Path, seed: int) -> None:  # noqa: ARG001 - the same signature for every part
    """Messages a CPU second, beside the least that any reader does: lower-case the text and hash it."""
    texts = _long_texts(read_labels(data / TRAIT_LABELS))
    judge, vectors = open_judge("offline"), load_vectors()
    batches = [[_question(text) for text in texts[i : i + BATCH]] for i in range(0, COUNT, BATCH)]
    floor = _seconds(lambda: [hashlib.sha256(t.lower().encode("utf-8", "surrogatepass")).digest() for t in texts])
    embed = _seconds(lambda: [vectors.embed(texts[i : i + BATCH]) for i in range(0, COUNT, BATCH)])
    read = _seconds(lambda: [judge.evaluate(batch) for batch in batches])
    print(f"messages of {SIZE} characters a CPU second: vectors with sentences {COUNT / embed:,.0f},")
    print(
        f"the whole judge {COUNT / read:,.0f}, lower-case and hash only {COUNT / floor:,.0f} (ratio {read / floor:.0f})"
    )
    files = [*SHIPPED.glob("*.model"), *Path(vectors_folder()).glob("*.npz")]
    print(f"artefacts together: {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


def vectors_folder() -> Path:
    """Where the table of vectors is."""
    from undersong.ml.static_vectors import SHIPPED as TABLE

    return TABLE.parent


def _long_texts(rows: Sequence[LabelledMessage]) -> list[str]:
    long = [each.text[:SIZE] for each in rows if len(each.text) >= SIZE]
    return [long[i % len(long)] for i in range(COUNT)]


def _question(text: str) -> Question:
    message = Message(id="m", conversation="c", position=0, author="a", role="agent", text=text)
    route = Route(message_id="m", tier="standard", tier_before="standard", depth="standard", width="message")
    return Question(message=message, scan=Scan(message_id="m"), route=route)


def _seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


CARD = """\
# What the offline judge reaches

The output of the parts of `bench/offline.py` (`--card FILE` writes such a page). AUC with 95 % intervals over
resampled groups unless said otherwise; always on groups that took no part in training.

The prototype phrases were written from the meaning of each signal before any result was seen, and have not been changed
since. The labels of the turns below were looked at four times, to choose how phrases and sentences are combined, never
which phrases: so their figures for prototypes are a little optimistic in form, not in content. Bags of words do not see
negation or who does what: "do see your friends" is near to "don't see your friends". What no wording shows is not
scored: lies, factual accuracy, false presuppositions, whether a conversation as a whole was safe. Languages other than
English are unmeasured. The share of triage in the trait heads, and the ridge and the weighing of the stance heads, were
chosen among about ten variants each by these same figures, which are that much optimistic.
"""
PARTS = {"traits": traits, "turns": turns, "stance": stance, "transfer": transfer, "domain": domain, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be given several times")
    parser.add_argument("--card", type=Path, help="also write what is printed into this file, as Markdown")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("give --data DIR or set UNDERSONG_DATA")
    with options.card.open("w", encoding="utf-8") if options.card else nullcontext(sys.stdout) as out:
        if options.card:
            out.write(CARD)
        with redirect_stdout(out):
            for name in options.part or PARTS:
                print(f"\n## {name}: {(PARTS[name].__doc__ or '').strip()}\n", flush=True)
                PARTS[name](Path(options.data), options.seed)


if __name__ == "__main__":
    main()
