"""What an agent's turns add up to: deference, sentiment, sudden latency, changed code."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence

from undersong.models import Deference, Hit, Message
from undersong.scan.code import Code, Versions
from undersong.scan.loops import LoopFinder
from undersong.scan.rules import LatencyRule, StructureRules
from undersong.scan.turns import Turns

_SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]|\n\s*\n")
NO_DEFERENCE = frozenset({"user", "system", "tool"})  # the ratio is of the agent's turns only


class AgentSoFar:
    """The turns of one agent up to now; fed in order."""

    def __init__(self, rules: StructureRules, finder: LoopFinder) -> None:
        self._rules = rules
        self._apologies = self._corrections = 0
        self._latencies: list[float] = []
        self._lengths: list[int] = []
        self._versions = Versions(rules.code)
        self.turns = Turns(finder)

    def deference(self, hits: Sequence[Hit]) -> Deference:
        """Apologies and corrections of the turns so far, this one included."""
        for hit in hits:
            if hit.trait == "structure":
                self._apologies += hit.label == "apology"
                self._corrections += hit.label == "correction"
        ratio = self._apologies / max(self._corrections, 1)
        return Deference(
            apologies=self._apologies,
            corrections=self._corrections,
            ratio=round(ratio, 4),
            high=ratio > self._rules.deference.ratio,
        )

    def latency_drop(self, message: Message) -> bool | None:
        """Whether the answer came suddenly fast for its length; None without a latency or without enough before it."""
        if message.latency is None:
            return None
        drop = _drops(message, self._latencies, self._lengths, self._rules.latency)
        insort(self._latencies, message.latency)
        insort(self._lengths, len(message.text))
        return drop

    def code_change(self, codes: Sequence[Code]) -> float | None:
        """How new this message's code is beside the agent's earlier code."""
        return self._versions.change(codes) if codes else None


def sentiment_score(text: str, hits: Sequence[Hit], label: str) -> float:
    """Empathic phrases per sentence, 0 to 1."""
    empathic = sum(hit.trait == "structure" and hit.label == label for hit in hits)
    if not empathic:
        return 0.0
    sentences = sum(1 for _ in _SENTENCE_END.finditer(text.strip()))
    return round(min(1.0, empathic / max(sentences, 1)), 4)


def _drops(message: Message, latencies: Sequence[float], lengths: Sequence[int], rule: LatencyRule) -> bool | None:
    if message.latency is None or len(latencies) < rule.earlier:
        return None
    fast = message.latency < rule.drop * _median(latencies)
    return fast and len(message.text) >= rule.length * _median(lengths)


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
