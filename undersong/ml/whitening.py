"""How sentence vectors are spread in ordinary text: the matrix that makes every direction count alike.

Learnt from unlabelled sentences. Without it, closeness is mostly closeness in topic and length.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.ml import static_vectors
from undersong.ml.model_file import pack, read_model, unpack
from undersong.ml.static_vectors import SIZE, Vectors, product, unit

MAGIC = b"undersong sentence spread"
VERSION = 1
FILE = "spread.model"
LARGEST = 1 << 22
STEP = 2.0**-10  # of the matrix; its columns are shorter than 1, so sums with unit vectors are exact in float32
SAMPLE = 600  # sentences that are kept as vectors: what a signal's scores are held against
SHRINK = 1.0  # of the mean variance, added to each direction's own: directions that hardly vary are mostly noise
REMEDY = "install the package again, or train it again (train/offline_judge.py)"


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
    centre = np.rint(exact.mean(axis=0) / static_vectors.UNIT_STEP) * static_vectors.UNIT_STEP
    meta = WhiteningMeta(vectors=static_vectors.VERSION, sentences=len(sentences))
    sample = sentences[:: -(-len(sentences) // SAMPLE)]
    return Whitening(meta, centre.astype(np.float32), (np.rint(matrix / STEP) * STEP).astype(np.float32), sample)


def dump(whitening: Whitening) -> bytes:
    """The bytes of the file."""
    centre = np.rint(whitening.centre / static_vectors.UNIT_STEP).astype("<i2")
    matrix = np.rint(whitening.matrix / STEP).astype("<i2")
    sample = np.rint(whitening.sample / static_vectors.UNIT_STEP).astype("<i2")
    return pack(MAGIC, VERSION, whitening.meta, centre.tobytes() + matrix.tobytes() + sample.tobytes())


def load(folder: Path) -> tuple[Whitening, str]:
    """The spread in a folder and its file's SHA-256; raises JudgeError where it is missing, broken or other."""
    return read_model(folder / FILE, _parse, REMEDY)


def _parse(data: bytes) -> Whitening:
    head, arrays = unpack(data, MAGIC, VERSION, LARGEST, "sentence spreads")
    meta = msgspec.json.decode(head, type=WhiteningMeta)
    if meta.vectors != static_vectors.VERSION:
        raise ValueError(f"it is for vectors of version {meta.vectors}, not {static_vectors.VERSION}")
    numbers = np.frombuffer(arrays, dtype="<i2").astype(np.float32)
    if len(numbers) <= SIZE + SIZE * SIZE or len(numbers) % SIZE:
        raise ValueError(f"it has {len(numbers)} numbers, which is no centre, matrix and sample")
    rows = numbers.reshape(-1, SIZE)
    vectors = rows * np.float32(static_vectors.UNIT_STEP)
    return Whitening(meta, vectors[0], rows[1 : 1 + SIZE] * np.float32(STEP), vectors[1 + SIZE :])
