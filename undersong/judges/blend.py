"""Trait heads that lean on triage: what a message's form says of harm in general, added to what its n-grams say.

Triage reads other features (how words begin) and was made for one question, any harm; each head alone
has fewer harmful examples to learn from. Out of fold the two together order better than either.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from undersong.judges import heads as model
from undersong.judges import ngrams
from undersong.judges.labels import LabelledMessage
from undersong.judges.training import Array, RidgeHeads, TraitCorpus, calibration, out_of_fold, plain
from undersong.models import NEGATIVE_TRAITS, TRAITS
from undersong.triage import training as triage_training
from undersong.triage.model import Triage

SHARE = 0.4  # of triage's spread in each head's own: harmful traits rise with it, the others fall; .3 to .6 are alike


def train_stacked(rows: Sequence[LabelledMessage], seed: int) -> tuple[model.Heads, Triage, Array]:
    """The heads and the triage model from all rows, and each row's scores by models that never saw its author."""
    corpus, other = TraitCorpus(rows), triage_training.TriageCorpus(rows)
    raw, harm = out_of_fold(corpus), triage_training.out_of_fold(other)
    shares = plain(
        np.array([_sign(trait) for trait in TRAITS]) * SHARE * raw.std(axis=0) / max(float(harm.std()), 1e-12)
    )
    blended = raw + harm[:, None] * shares
    weights, scales, idf = RidgeHeads(corpus, np.arange(len(rows))).weights()
    calibrated = calibration(blended, corpus.labels)
    heads = tuple(
        msgspec.structs.replace(head, triage=share) for head, share in zip(calibrated, shares.tolist(), strict=True)
    )
    meta = model.TraitHeadsMeta(
        features=ngrams.VERSION,
        heads=heads,
        seed=seed,
        messages=len(rows),
        authors=len(set(corpus.authors.tolist())),
    )
    triage, _ = triage_training.train(rows)
    return model.Heads(meta, weights, scales, idf), triage, model.Curves(heads)(blended)


def _sign(trait: str) -> float:
    return 1.0 if trait in NEGATIVE_TRAITS else -1.0
