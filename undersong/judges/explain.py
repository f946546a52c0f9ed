"""What moved the offline judge's scores of a text: n-grams with their share of a trait, sentences of a signal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np

from undersong.judges import ngrams
from undersong.judges.heads import Heads
from undersong.judges.offline import SHOWN, Artefacts
from undersong.judges.prototypes import Prototypes
from undersong.models import TRAITS

GRAMS = 5  # words, or pairs of words, that are told per trait and direction


class Moved(msgspec.Struct, frozen=True):
    """A word or a pair of neighbouring words, and what it added to the trait's raw score (below 0: took from it)."""

    words: str
    share: float


class Shown(msgspec.Struct, frozen=True):
    """The sentence that shows a signal most: ``text[start:end]``, with the signal's score of the whole text."""

    signal: str
    score: float
    start: int
    end: int


def moved(heads: Heads, text: str, trait: str) -> tuple[Moved, ...]:
    """The words that raised a trait most, then those that lowered it most; character n-grams are not told.

    A word that stands several times counts once, as it does in the score.
    """
    column, weights, idf = TRAITS.index(trait), heads.weights[0], heads.idf[0].astype(np.float64)
    grams = dict(_words(text))
    buckets = np.array(sorted(set(grams.values())), dtype=np.int64)
    norm = np.sqrt((idf[buckets] ** 2).sum()) if buckets.size else 0.0
    if not norm:
        return ()
    shares = {words: float(weights[bucket, column] * heads.scales[0, column] / norm) for words, bucket in grams.items()}
    ranked = sorted(((share, words) for words, share in shares.items() if share), key=lambda each: (-each[0], each[1]))
    raised = [each for each in ranked[:GRAMS] if each[0] > 0]
    lowered = [each for each in ranked[::-1][:GRAMS] if each[0] < 0]
    return tuple(Moved(words, round(share, 4)) for share, words in [*raised, *lowered])


def shown(artefacts: Artefacts, prototypes: Prototypes, text: str) -> tuple[Shown, ...]:
    """The signals of a text that are .5 or more, the highest first, each with its strongest sentence."""
    embedded = artefacts.vectors.embed([text])
    if not embedded.spans[0]:
        return ()
    found = prototypes.score(embedded)
    scores = found.scores[0].tolist()
    places = sorted((place for place, score in enumerate(scores) if score >= SHOWN), key=lambda at: (-scores[at], at))
    spans = [embedded.spans[0][found.strongest[0, place]] for place in places]
    return tuple(
        Shown(prototypes.ids[place], scores[place], span.start, span.end)
        for place, span in zip(places, spans, strict=True)
    )


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word, mark, and pair of neighbours, with its bucket."""
    words = [word for word in ngrams.words_of(text) if word]
    for word in words:
        yield word, int(ngrams.grams(word).words[0])
    for first, second in pairwise(words):
        pair = set(ngrams.grams(f"{first} {second}").words.tolist())
        pair -= {int(ngrams.grams(first).words[0]), int(ngrams.grams(second).words[0])}
        if pair:
            yield f"{first} {second}", pair.pop()
