"""What an agent's turns add up to: deference, sentiment, sudden latency, changed code."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence

from undersong.models import Deference, Hit, Message
from undersong.scan.code import AgentCodeHistory, ExtractedCode
from undersong.scan.rules import LatencyRule, StructureRules

_SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]|\n\s*\n")
_DEFERENCE_LABELS = ("apology", "correction", "agreement", "disagreement")
_NOTHING_SAID = Deference(apologies=0, corrections=0, ratio=0.0, high=False)
NO_DEFERENCE = frozenset({"user", "system", "tool"})  # the ratio is of the agent's turns only


class AgentSoFar:
    """The turns of one agent up to now; fed in order."""

    def __init__(self, rules: StructureRules) -> None:
        self._rules = rules
        self._counts = dict.fromkeys(_DEFERENCE_LABELS, 0)
        self._deference = _NOTHING_SAID
        self._latencies: list[float] = []
        self._lengths: list[int] = []
        self._versions: AgentCodeHistory | None = None  # of the few who write code

    def deference(self, hits: Sequence[Hit]) -> Deference:
        """Apologies and corrections of the turns so far, this one included; the wider counts beside them."""
        if not hits:
            return self._deference
        labels = [hit.label for hit in hits if hit.trait == "structure" and hit.label in _DEFERENCE_LABELS]
        if not labels:
            return self._deference
        for label in labels:
            self._counts[label] += 1
        apologies, corrections, agreements, disagreements = self._counts.values()
        ratio = apologies / max(corrections, 1)
        self._deference = Deference(
            apologies=apologies,
            corrections=corrections,
            ratio=round(ratio, 4),
            high=ratio > self._rules.deference.ratio,
            agreements=agreements,
            disagreements=disagreements,
            wide_ratio=round((apologies + agreements) / max(corrections + disagreements, 1), 4),
        )
        return self._deference

    def latency_drop(self, message: Message) -> bool | None:
        """Whether the answer came suddenly fast for its length; None without a latency or without enough before it."""
        if message.latency is None:
            return None
        drop = _drops(message, self._latencies, self._lengths, self._rules.latency)
        insort(self._latencies, message.latency)
        insort(self._lengths, len(message.text))
        return drop

    def code_change(self, codes: Sequence[ExtractedCode]) -> float | None:
        """How new this message's code is beside the agent's earlier code."""
        if not codes:
            return None
        if self._versions is None:
            self._versions = AgentCodeHistory(self._rules.code)
        return self._versions.change(codes)


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
