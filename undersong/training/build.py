"""Labels → a folder that ``--judge offline:DIR`` reads; the artefacts of the package are made by the same program.

Needs scikit-learn (``pip install undersong[train]``); scoring does not.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from undersong.errors import InputError
from undersong.judges import stance as stances
from undersong.judges.offline import SHIPPED, TURN_HEADS, TURN_SIGNALS, TURNS
from undersong.ml import model_file
from undersong.ml import ood_check as domains
from undersong.ml import trait_heads as trait_heads
from undersong.ml import whitening as spreads
from undersong.ml.ood_check import DomainCheck
from undersong.ml.static_vectors import load_vectors
from undersong.ml.triage import FILE as TRIAGE
from undersong.ml.triage import triage_bytes
from undersong.training import stance as stance_training
from undersong.training.datasets import (
    OTHER_CONVERSATIONS,
    STANCE_LABELS,
    TRAIT_LABELS,
    TURN_LABELS,
    LabelledMessage,
    domain_texts,
    judged_turns,
    pressured_answers,
    read_conversations,
    read_labels,
    turn_labels,
)
from undersong.training.evaluation import Quality, measure
from undersong.training.model_card import card, table, within
from undersong.training.ood import DomainTexts, synthetic_sources
from undersong.training.ood import train as train_domain
from undersong.training.trait_heads import train
from undersong.training.triage import train_stacked

OWN = "labelled"  # the kind of text that a user's labels are of
CARD = "MODEL_CARD.md"
SENTENCES = 4000  # of each source that the spread is learnt from


class BuildResult(msgspec.Struct, frozen=True):
    """What a training wrote: file name → size in bytes, and the figures of the trait heads."""

    files: dict[str, int]
    quality: Quality
    domain: DomainCheck

    def summary(self) -> str:
        """The table of figures and the files, for a terminal."""
        kind = self.domain.meta.kinds[0]
        lines = [table(self.quality), "", within(self.quality)]
        lines.append(
            f"Domain check: {kind.kept:.0%} of the labelled texts, by authors held out, are taken for measured; "
            f"{kind.refused:.0%} of texts of other kinds, each kind held out, are not."
        )
        return "\n".join(lines + [f"{name}: {size:,} bytes" for name, size in self.files.items()])


def build_own(labels: Path, out: Path, seed: int) -> BuildResult:
    """Trait heads and domain check from labels of one's own, with their card.

    Raises InputError, which names file and line, for labels that cannot be used.
    """
    rows = read_labels(labels)
    texts = DomainTexts(OWN, tuple(row.text for row in rows), tuple(row.author for row in rows))
    whitening, _ = spreads.load(SHIPPED)
    try:
        return _traits(rows, [texts], synthetic_sources(), whitening, out, seed)
    except InputError as error:  # of the labels as a whole: no single line is to blame
        raise InputError(error.what, where=error.where or str(labels), remedy=error.remedy) from error


def build_shipped(data: Path, out: Path, seed: int) -> BuildResult:
    """All artefacts from the development data in a folder."""
    rows = read_labels(data / TRAIT_LABELS)
    conversations = {
        name: read_conversations(data / name) for name in (TURN_LABELS, STANCE_LABELS, OTHER_CONVERSATIONS)
    }
    posts = DomainTexts("agent_posts", tuple(row.text for row in rows), tuple(row.author for row in rows))
    measured = [posts, domain_texts(TURNS, conversations[TURN_LABELS], "assistant")]
    others = [
        domain_texts("companion_users", conversations[TURN_LABELS], "user"),
        domain_texts("pressed_answers", conversations[STANCE_LABELS], "assistant"),
        domain_texts("pressing_users", conversations[STANCE_LABELS], "user"),
        domain_texts("negotiation", conversations[OTHER_CONVERSATIONS]),
    ]
    whitening = _fit_whitening([*measured, *others])
    out.mkdir(parents=True, exist_ok=True)
    sizes = {spreads.FILE: _write(out / spreads.FILE, spreads.dump(whitening))}
    turns = judged_turns(conversations[TURN_LABELS])
    heads, _ = train(turn_labels(turns), seed, TURN_SIGNALS, groups=[turn.model for turn in turns])
    sizes[TURN_HEADS] = _write(out / TURN_HEADS, trait_heads.dump(heads))
    stance, _ = stance_training.train(dict(pressured_answers(conversations[STANCE_LABELS])), load_vectors())
    sizes[stances.FILE] = _write(out / stances.FILE, stances.dump(stance))
    built = _traits(rows, measured, [*others, *synthetic_sources()], whitening, out, seed)
    return BuildResult(built.files | sizes, built.quality, built.domain)


def _traits(
    rows: list[LabelledMessage],
    measured: list[DomainTexts],
    others: list[DomainTexts],
    whitening: spreads.Whitening,
    out: Path,
    seed: int,
) -> BuildResult:
    heads, triage, unseen = train_stacked(rows, seed)
    domain = train_domain(measured, others, load_vectors(), whitening)
    quality = measure(rows, unseen, seed)
    out.mkdir(parents=True, exist_ok=True)
    data = trait_heads.dump(heads)
    sizes = {
        trait_heads.FILE: _write(out / trait_heads.FILE, data),
        domains.FILE: _write(out / domains.FILE, domains.dump(domain)),
        model_file.FILE: _write(out / model_file.FILE, model_file.dump(row.text for row in rows)),
    }
    if out != SHIPPED:  # the package has the same model on its own shelf
        sizes[TRIAGE] = _write(out / TRIAGE, triage_bytes(triage))
    (out / CARD).write_text(card(rows, quality, domain, data, seed), encoding="utf-8")
    return BuildResult(sizes, quality, domain)


def _fit_whitening(sources: list[DomainTexts]) -> spreads.Whitening:
    """From the sentences of all sources, each evenly thinned to the same number at most; no label is used."""
    parts = [load_vectors().embed(each.texts).parts for each in sources]
    return spreads.fit_whitening(np.vstack([each[:: -(-len(each) // SENTENCES)] for each in parts]))


def _write(path: Path, data: bytes) -> int:
    path.write_bytes(data)
    return len(data)
