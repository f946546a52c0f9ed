"""Trains a judge on a user's labels and writes the folder that ``--judge offline:DIR`` reads.

Needs scikit-learn (``pip install undersong[train]``); scoring does not.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from undersong.errors import InputError
from undersong.judges.offline import SHIPPED
from undersong.ml import model_file, static_vectors
from undersong.ml import ood_check as domains
from undersong.ml import trait_heads as trait_heads
from undersong.ml.ood_check import DomainCheck
from undersong.ml.static_vectors import load_vectors
from undersong.ml.triage import FILE as TRIAGE
from undersong.ml.triage import triage_bytes
from undersong.training.datasets import LabelledMessage, read_labels
from undersong.training.evaluation import Quality, measure
from undersong.training.model_card import card, table, within
from undersong.training.ood import DomainTexts, synthetic_sources
from undersong.training.ood import train as train_domain
from undersong.training.triage import train_stacked

OWN = "labelled"  # the kind of text that a user's labels are of
CARD = "MODEL_CARD.md"


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
    whitening, _ = static_vectors.load_whitening(SHIPPED)
    try:
        return build_trait_heads(rows, [texts], synthetic_sources(), whitening, out, seed)
    except InputError as error:  # of the labels as a whole: no single line is to blame
        raise InputError(error.what, where=error.where or str(labels), remedy=error.remedy) from error


def build_trait_heads(
    rows: list[LabelledMessage],
    measured: list[DomainTexts],
    others: list[DomainTexts],
    whitening: static_vectors.Whitening,
    out: Path,
    seed: int,
) -> BuildResult:
    """Train and write the trait heads, their domain check and their model card."""
    heads, triage, unseen = train_stacked(rows, seed)
    domain = train_domain(measured, others, load_vectors(), whitening)
    quality = measure(rows, unseen, seed)
    out.mkdir(parents=True, exist_ok=True)
    data = trait_heads.dump(heads)
    sizes = {
        trait_heads.FILE: write_file(out / trait_heads.FILE, data),
        domains.FILE: write_file(out / domains.FILE, domains.dump(domain)),
        model_file.FILE: write_file(out / model_file.FILE, model_file.dump(row.text for row in rows)),
    }
    if out != SHIPPED:  # the package has the same model on its own shelf
        sizes[TRIAGE] = write_file(out / TRIAGE, triage_bytes(triage))
    (out / CARD).write_text(card(rows, quality, domain, data, seed), encoding="utf-8")
    return BuildResult(sizes, quality, domain)


def write_file(path: Path, data: bytes) -> int:
    """Write a file; its size in bytes."""
    path.write_bytes(data)
    return len(data)
