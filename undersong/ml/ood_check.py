"""Is a text of a kind that a head was measured on? A linear check on its meaning and its form, with its error rates.

It says "unmeasured" where it cannot tell: a score that nobody checked on such text must not pass for one that was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.ml import static_vectors
from undersong.ml.model_file import pack, read_model, unpack
from undersong.ml.static_vectors import SIZE, Vectors, Whitening

Array = npt.NDArray[np.float64]

MAGIC = b"undersong domains"
VERSION = 1
FILE = "domain.model"
LARGEST = 1 << 20
MARKS = ("\n", '"', "I ", "?", "`")  # whose density is part of a text's form, beside length, digits and other letters
FORM = len(MARKS) + 3
WEIGHT = 0.05  # of the form beside the vector, whose numbers are about 1/16
PER = 50  # a mark in so many characters counts 1
REMEDY = "install the package again, or train it again (undersong judge train)"


class TextKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of text: at or above ``threshold`` a text is taken for it.

    ``kept`` is the share of texts of this kind, by authors held out, that are; ``refused`` the share of texts of kinds
    held out that are not, ``refused_by`` per kind.
    """

    name: str
    threshold: float
    bias: float
    kept: float
    refused: float
    refused_by: dict[str, float]


class DomainMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of itself; ``vectors`` is the version of the static vectors."""

    vectors: int
    kinds: tuple[TextKind, ...]


class DomainCheck(msgspec.Struct, frozen=True, eq=False):
    """``weights`` (kinds, 256 + FORM)."""

    meta: DomainMeta
    weights: Array

    def kinds(self, features: Array) -> dict[str, npt.NDArray[np.bool_]]:
        """Per kind, which rows of ``features`` are of it."""
        return {
            kind.name: (features * weights).sum(axis=1) + kind.bias >= kind.threshold
            for kind, weights in zip(self.meta.kinds, self.weights, strict=True)
        }


def features(texts: Sequence[str], vectors: Vectors, whitening: Whitening) -> Array:
    """(n, 256 + FORM): what the texts are about and what they look like."""
    even = whitening.whiten(vectors).astype(np.float64)
    even[~vectors.any(axis=1)] = 0.0
    return np.hstack([even, np.array([_form(text) for text in texts]).reshape(-1, FORM) * WEIGHT])


def dump(domain: DomainCheck) -> bytes:
    """The bytes of the file."""
    return pack(MAGIC, VERSION, domain.meta, domain.weights.astype("<f4").tobytes())


def load(folder: Path) -> tuple[DomainCheck, str]:
    """The check in a folder and its file's SHA-256; raises JudgeError where it is missing, broken or other."""
    return read_model(folder / FILE, _parse, REMEDY)


def _form(text: str) -> list[float]:
    size = len(text) + 1
    marks = [text.count(mark) / size * PER for mark in MARKS]
    digits = sum(map(text.count, "0123456789")) / size * PER / 5
    other = (len(text.encode("utf-8", "surrogatepass")) - len(text)) / size * PER / 5
    return [float(np.log1p(size)), *marks, digits, other]


def _parse(data: bytes) -> DomainCheck:
    head, arrays = unpack(data, MAGIC, VERSION, LARGEST, "domains")
    meta = msgspec.json.decode(head, type=DomainMeta)
    if meta.vectors != static_vectors.VERSION:
        raise ValueError(f"it is for vectors of version {meta.vectors}, not {static_vectors.VERSION}")
    weights = np.frombuffer(arrays, dtype="<f4").astype(np.float64)
    if len(weights) != len(meta.kinds) * (SIZE + FORM):
        raise ValueError(f"it has {len(weights)} weights for {len(meta.kinds)} kinds")
    return DomainCheck(meta, weights.reshape(len(meta.kinds), SIZE + FORM))
