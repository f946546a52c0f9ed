"""Static vectors: texts and their sentences as points whose closeness is closeness in meaning; NumPy only."""

from __future__ import annotations

from undersong.vectors.sentences import SentenceSpan, sentences
from undersong.vectors.static import Embedded, StaticVectors, load_vectors

__all__ = ["Embedded", "SentenceSpan", "StaticVectors", "load_vectors", "sentences"]
