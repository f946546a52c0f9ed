"""The table of token vectors, and the unit vectors of texts and sentences made from it.

Token vectors and unit vectors are rounded to a grid of binary fractions, so that sums and products are exact in
whatever order they are taken: a text has the same vectors in every batch and on every machine.

The whitening says how sentence vectors are spread in ordinary text: a matrix, learnt from unlabelled sentences, that
makes every direction count alike. Without it, closeness is mostly closeness in topic and length.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from io import BytesIO
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.datafiles.yaml_loader import MODELS
from undersong.errors import JudgeError
from undersong.ml.model_file import pack, read_model, unpack

FILE = "static_minilm_256.npz"
SHIPPED = MODELS / "vectors" / FILE
VERSION = 1  # raise it with any change that moves a vector: what was learnt from other vectors is refused
SIZE = 256
TOKEN_STEP = 2.0**-10  # token values stay under 8: 400 of them (a sentence) sum exactly in float32
UNIT_STEP = 2.0**-11  # products of two unit values are multiples of 2^-22: dot products are exact in float32
TOGETHER = 1 << 11  # tokens that are gathered at once: 2 MB, so that they stay in the cache
FEW_TOKENS = 1 << 15  # whose vectors are worked out one by one as fast as those of the whole table
NORMALISED = 1 << 12  # rows that are brought to length 1 at once, in 16 MB
ALONE = 1 << 18  # multiplications up to which OpenBLAS takes no second thread (its interface/gemm.c)
FEW = 128  # rows up to which a second thread costs more than it brings: it must be waited for, and may have no core
MAGIC = b"undersong sentence spread"
WHITENING_VERSION = 1
WHITENING_FILE = "spread.model"
LARGEST = 1 << 22
STEP = 2.0**-10  # of the matrix; its columns are shorter than 1, so sums with unit vectors are exact in float32
SAMPLE = 600  # sentences that are kept as vectors: what a signal's scores are held against
SHRINK = 1.0  # of the mean variance, added to each direction's own: directions that hardly vary are mostly noise
REMEDY = "install the package again, or train it again (train/offline_judge.py)"

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
        self._bytes, self._scale = table, scale
        self._ones = np.ones(TOGETHER, dtype=np.float32)
        self._taken = 0  # tokens so far
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
        for start in range(0, len(sums), NORMALISED):  # in their place: a long text has hundreds of thousands
            sums[start : start + NORMALISED] = unit(sums[start : start + NORMALISED])
        return Embedded(texts=unit(wholes), parts=sums, bounds=bounds, spans=spans)

    def sentence_vectors(self, parts: Sequence[str]) -> Vectors:
        """Unit vectors (n, 256) of texts that are taken as one sentence each."""
        return unit(self._sums(parts))

    @cached_property
    def _table(self) -> Vectors:
        return _on_grid(self._bytes, self._scale)

    def _rows(self, ids: npt.NDArray[np.intp], out: Vectors) -> Vectors:
        """The vectors of some tokens; the whole table, 30 MB, is worked out only where it is worth it."""
        self._taken += len(ids)
        if self._taken <= FEW_TOKENS:
            return _on_grid(self._bytes[ids], self._scale[ids])
        return self._table.take(ids, axis=0, out=out[: len(ids)], mode="clip")

    def _sums(self, parts: Sequence[str]) -> Vectors:
        """The sums (n, 256) of the token vectors; a sentence that occurs again, as in logs, is summed once."""
        places: dict[str, int] = {}
        rows = [places.setdefault(part, len(places)) for part in parts]
        sums = self._sums_of_distinct(list(places))
        return sums if len(places) == len(parts) else sums[rows]

    def _sums_of_distinct(self, parts: Sequence[str]) -> Vectors:
        sums = np.zeros((len(parts), SIZE), dtype=np.float32)
        rows = np.empty((TOGETHER, SIZE), dtype=np.float32)
        done = 0
        for group in _groups(map(self._pieces.ids, parts)):
            bounds = [0, *accumulate(map(len, group))]
            flat = np.fromiter(chain.from_iterable(group), dtype=np.intp, count=bounds[-1])
            taken = self._rows(flat, rows)
            for place, (start, end) in enumerate(pairwise(bounds), start=done):
                np.dot(self._ones[: end - start], taken[start:end], out=sums[place])
            done += len(group)
        return sums


def _on_grid(table: npt.NDArray[np.int8], scale: Vectors) -> Vectors:
    """Token vectors (n, 256) from their bytes, on the grid."""
    exact = table * scale[:, None]
    exact /= np.float32(TOKEN_STEP)
    np.rint(exact, out=exact)
    exact *= np.float32(TOKEN_STEP)
    return exact


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


class WhiteningMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of itself; ``vectors`` is the version of the static vectors."""

    vectors: int
    sentences: int


class Whitening(msgspec.Struct, frozen=True, eq=False):
    """``centre`` (256) and ``matrix`` (256, 256), both on their grids; ``sample`` (n, 256) of ordinary sentences."""

    meta: WhiteningMeta
    centre: Vectors
    matrix: Vectors
    sample: Vectors

    def whiten(self, vectors: Vectors) -> Vectors:
        """Unit vectors (n, 256) → unit vectors in which no direction dominates; rows of zeros are no exception."""
        return unit(product(vectors - self.centre, self.matrix))


def fit_whitening(sentences: npt.NDArray[np.float32]) -> Whitening:
    """The spread of unit vectors (n, 256), n of at least some thousands."""
    exact = sentences.astype(np.float64)
    values, directions = np.linalg.eigh(np.cov(exact.T))
    matrix = (directions / np.sqrt(values + SHRINK * values.mean())) @ directions.T
    matrix *= np.sqrt(values.mean())  # near the identity, so that its numbers fit their grid
    centre = np.rint(exact.mean(axis=0) / UNIT_STEP) * UNIT_STEP
    meta = WhiteningMeta(vectors=VERSION, sentences=len(sentences))
    sample = sentences[:: -(-len(sentences) // SAMPLE)]
    return Whitening(meta, centre.astype(np.float32), (np.rint(matrix / STEP) * STEP).astype(np.float32), sample)


def dump_whitening(whitening: Whitening) -> bytes:
    """The bytes of the file."""
    centre = np.rint(whitening.centre / UNIT_STEP).astype("<i2")
    matrix = np.rint(whitening.matrix / STEP).astype("<i2")
    sample = np.rint(whitening.sample / UNIT_STEP).astype("<i2")
    return pack(MAGIC, WHITENING_VERSION, whitening.meta, centre.tobytes() + matrix.tobytes() + sample.tobytes())


def load_whitening(folder: Path) -> tuple[Whitening, str]:
    """The spread in a folder and its file's SHA-256; raises JudgeError where it is missing, broken or other."""
    return read_model(folder / WHITENING_FILE, _parse_whitening, REMEDY)


def _parse_whitening(data: bytes) -> Whitening:
    head, arrays = unpack(data, MAGIC, WHITENING_VERSION, LARGEST, "sentence spreads")
    meta = msgspec.json.decode(head, type=WhiteningMeta)
    if meta.vectors != VERSION:
        raise ValueError(f"it is for vectors of version {meta.vectors}, not {VERSION}")
    numbers = np.frombuffer(arrays, dtype="<i2").astype(np.float32)
    if len(numbers) <= SIZE + SIZE * SIZE or len(numbers) % SIZE:
        raise ValueError(f"it has {len(numbers)} numbers, which is no centre, matrix and sample")
    rows = numbers.reshape(-1, SIZE)
    vectors = rows * np.float32(UNIT_STEP)
    return Whitening(meta, vectors[0], rows[1 : 1 + SIZE] * np.float32(STEP), vectors[1 + SIZE :])


LONGEST = 400  # characters of a span: what a reader takes in as one quote
_END = re.compile(r"[.!?…][.!?…\"'”’)\]*_]*\s+|\n")


class SentenceSpan(NamedTuple):
    """``text[start:end]`` of a message, in Unicode code points."""

    start: int
    end: int


def sentences(text: str) -> list[SentenceSpan]:
    """The sentences in order, without outer white space; none is empty."""
    spans: list[SentenceSpan] = []
    start = 0
    for end in [found.end() for found in _END.finditer(text)] + [len(text)]:
        sentence = text[start:end].strip()
        if len(sentence) > LONGEST:
            spans += _within(text, start, end)
        elif sentence:
            first = text.index(sentence, start)
            spans.append(SentenceSpan(first, first + len(sentence)))
        start = end
    return spans


def _within(text: str, start: int, end: int) -> Iterator[SentenceSpan]:
    while start < end:
        cut = end if end - start <= LONGEST else text.rfind(" ", start + 1, start + LONGEST)
        cut = start + LONGEST if cut < 0 else cut
        piece = text[start:cut].strip()
        if piece:
            first = text.index(piece, start)
            yield SentenceSpan(first, first + len(piece))
        start = cut


UNKNOWN = "[UNK]"
LONGEST_WORD = 100  # characters; a longer word is unknown (BERT's own limit)
REMEMBERED = 1 << 17  # words whose pieces are kept, so that memory stays bounded
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_SPLITTERS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")

Pieces = tuple[int, ...]


class _Characters(dict[int, str]):
    """Code point → what stands for it in a normalised text; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = text = _normalised(chr(code))
        return text


class WordPiece(dict[str, Pieces]):
    """A vocabulary; also the memory of what stood between white space before, and of its pieces."""

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__()
        self._known = {token: place for place, token in enumerate(tokens)}
        self._unknown = self._known[UNKNOWN]
        self._words: dict[str, Pieces] = {}  # pieces of words, of which the chunks of code and paths are made
        self._longest = max(map(len, self._known))  # characters

    def ids(self, text: str) -> list[int]:
        """The ids of a text's pieces, in order."""
        if len(self) > REMEMBERED:
            self.clear()
            self._words.clear()
        if _SPLITTERS.search(text):  # str.split takes these for white space, BERT drops them
            text = _SPLITTERS.sub("", text)
        return list(chain.from_iterable(map(self.__getitem__, text.split())))

    def __missing__(self, chunk: str) -> Pieces:
        self[chunk] = pieces = tuple(chain.from_iterable(map(self._pieces_of, words(chunk))))
        return pieces

    def _pieces_of(self, word: str) -> Pieces:
        pieces = self._words.get(word)
        if pieces is None:
            self._words[word] = pieces = self._cut(word)
        return pieces

    def _cut(self, word: str) -> Pieces:
        if len(word) > LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                piece = self._known.get(mark + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def words(text: str) -> list[str]:
    """The words and marks of a text, normalised: what WordPiece cuts."""
    return text.translate(_CHARACTERS).split()


def _normalised(char: str) -> str:
    if _dropped(char):
        return ""
    if char.isspace():
        return " "
    if any(first <= ord(char) <= last for first, last in _CJK):
        return f" {unicodedata.normalize('NFD', char)} "
    plain = "".join(part for part in unicodedata.normalize("NFD", char) if unicodedata.category(part) != "Mn")
    lower = "".join(part.lower() for part in plain)
    return "".join(f" {part} " if _is_mark(part) else part for part in lower)


def _dropped(char: str) -> bool:
    if char in "\t\n\r":
        return False
    return char in "\x00\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"}


def _is_mark(char: str) -> bool:
    return char in _ASCII_MARKS or unicodedata.category(char).startswith("P")


_ASCII_MARKS = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHARACTERS = _Characters()
