"""Conditions on single rows, some rows at a time: what lies between stays in a cache, and goes with its block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from undersong.patterns.engine.sums import F
from undersong.patterns.engine.vectors import B, Codes, Vectors
from undersong.patterns.expressions import Node
from undersong.patterns.fields import Kind

BLOCK = 1 << 16  # rows


def in_chunks(vectors: Vectors, what: str, asked: Any, size: int) -> Any:
    """``vectors.what(asked)``, ``holds`` or ``bits``, for leaves of so many rows."""
    if size < 2 * BLOCK:
        return getattr(vectors, what)(asked)
    parts = [
        getattr(Vectors(_RowChunk(vectors, slice(first, first + BLOCK))), what)(asked)
        for first in range(0, size, BLOCK)
    ]
    return np.concatenate(parts) if np.ndim(parts[0]) else parts[0]


class _RowChunk:
    """Some rows of leaves that are known for all."""

    def __init__(self, vectors: Vectors, rows: slice) -> None:
        self.vectors, self.rows = vectors, rows

    @property
    def codes(self) -> Mapping[str, int]:
        return self.vectors.leaves.codes

    def kind(self, node: Node) -> Kind:
        return self.vectors.leaves.kind(node)

    def number(self, node: Node) -> F:
        return self.vectors.number(node)[self.rows]

    def text(self, node: Node) -> Codes:
        return self.vectors.text(node)[self.rows]

    def truth(self, node: Node, wanted: bool) -> B:
        return self.vectors.is_(node, wanted)[self.rows]  # type: ignore[no-any-return]
