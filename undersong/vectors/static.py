"""The table of token vectors, and the unit vectors of texts and sentences made from it.

Token vectors and unit vectors are rounded to a grid of binary fractions, so that sums and products are exact in
whatever order they are taken: a text has the same vectors in every batch and on every machine.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.errors import JudgeError
from undersong.vectors.sentences import SentenceSpan, sentences
from undersong.vectors.wordpiece import WordPiece

FILE = "static_minilm_256.npz"
SHIPPED = Path(__file__).parent / "models" / FILE
VERSION = 1  # raise it with any change that moves a vector: what was learnt from other vectors is refused
SIZE = 256
TOKEN_STEP = 2.0**-10  # token values stay under 8: 400 of them (a sentence) sum exactly in float32
UNIT_STEP = 2.0**-11  # products of two unit values are multiples of 2^-22: dot products are exact in float32
TOGETHER = 1 << 11  # tokens that are gathered at once: 2 MB, so that they stay in the cache
ALONE = 1 << 18  # multiplications up to which OpenBLAS takes no second thread (its interface/gemm.c)
FEW = 128  # rows up to which a second thread costs more than it brings: it must be waited for, and may have no core

Vectors = npt.NDArray[np.float32]
Number = TypeVar("Number", np.float32, np.float64)


class Embedded(msgspec.Struct, frozen=True, eq=False):
    """Texts as vectors: ``texts`` (n, 256) unit rows, 0 where nothing is known; ``parts`` those of the sentences.

    ``bounds`` (n + 1): the sentences of text i are ``parts[bounds[i]:bounds[i + 1]]``, with spans ``spans[i]``.
    """

    texts: Vectors
    parts: Vectors
    bounds: npt.NDArray[np.intp]
    spans: tuple[tuple[SentenceSpan, ...], ...]


class StaticVectors:
    """Texts → vectors: the sum of the vectors of its tokens, to length 1."""

    def __init__(self, tokens: Sequence[str], table: npt.NDArray[np.int8], scale: Vectors, sha256: str) -> None:
        self._pieces = WordPiece(tokens)
        exact = table.astype(np.float32) * scale[:, None]
        self._table = np.rint(exact / np.float32(TOKEN_STEP)) * np.float32(TOKEN_STEP)
        self._ones = np.ones(TOGETHER, dtype=np.float32)
        self.sha256 = sha256

    def embed(self, texts: Sequence[str]) -> Embedded:
        """The vectors of some texts and of all their sentences."""
        spans = tuple(tuple(sentences(text)) for text in texts)
        parts = [text[span.start : span.end] for text, own in zip(texts, spans, strict=True) for span in own]
        bounds = np.cumsum([0, *map(len, spans)], dtype=np.intp)
        sums = self._sums(parts)
        wholes = np.zeros((len(texts), SIZE))
        for place, (start, end) in enumerate(pairwise(bounds.tolist())):
            np.add.reduce(sums[start:end], axis=0, dtype=np.float64, out=wholes[place])
        return Embedded(texts=unit(wholes), parts=unit(sums), bounds=bounds, spans=spans)

    def sentence_vectors(self, parts: Sequence[str]) -> Vectors:
        """Unit vectors (n, 256) of texts that are taken as one sentence each."""
        return unit(self._sums(parts))

    def _sums(self, parts: Sequence[str]) -> Vectors:
        sums = np.zeros((len(parts), SIZE), dtype=np.float32)
        rows = np.empty((TOGETHER, SIZE), dtype=np.float32)
        ids = [self._pieces.ids(part) for part in parts]
        done = 0
        for group in _groups(ids):
            bounds = [0, *accumulate(map(len, group))]
            flat = np.fromiter(chain.from_iterable(group), dtype=np.intp, count=bounds[-1])
            taken = self._table.take(flat, axis=0, out=rows[: len(flat)], mode="clip")
            for place, (start, end) in enumerate(pairwise(bounds), start=done):
                np.dot(self._ones[: end - start], taken[start:end], out=sums[place])
            done += len(group)
        return sums


def unit(sums: npt.NDArray[np.floating]) -> Vectors:
    """Rows to length 1 on the grid; a row of zeros stays."""
    exact = sums.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    exact *= (1 / (np.where(lengths > 0, lengths, 1.0) * UNIT_STEP))[:, None]
    np.rint(exact, out=exact)
    exact *= UNIT_STEP
    return exact.astype(np.float32)


def product(rows: npt.NDArray[Number], matrix: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """``rows @ matrix`` (n, k) (k, m); of few rows in pieces that are worked out in the calling thread alone."""
    step = max(1, ALONE // matrix.size)
    if not step < len(rows) <= FEW:
        return rows @ matrix
    return np.concatenate([rows[i : i + step] @ matrix for i in range(0, len(rows), step)])


@cache
def load_vectors(path: Path = SHIPPED) -> StaticVectors:
    """The table in a file, loaded once; raises JudgeError where it cannot be read."""
    remedy = "install the package again"
    try:
        data = path.read_bytes()
        with np.load(BytesIO(data), allow_pickle=False) as arrays:
            tokens, table, scale = (arrays[name] for name in ("tokens", "table", "scale"))
    except OSError as error:
        what = f"the vectors cannot be read: {error.strerror}"
        raise JudgeError(what, where=str(path), remedy=remedy) from error
    except (EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise JudgeError(f"the vectors cannot be used: {error}", where=str(path), remedy=remedy) from error
    names = tokens.tobytes().decode("utf-8").split("\n")
    return StaticVectors(names, table, scale, hashlib.sha256(data).hexdigest())


def _groups(lists: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    """Lists together while their lengths add up to no more than TOGETHER."""
    group: list[list[int]] = []
    size = 0
    for ids in lists:
        if size + len(ids) > TOGETHER:
            yield group
            group, size = [], 0
        group.append(ids)
        size += len(ids)
    if group:
        yield group
