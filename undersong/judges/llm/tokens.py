"""How many tokens a question will take: a rule of thumb, until answers of the model are kept; then its own rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np

from undersong.judges.llm.pricing import Tokens, load_prices, model_facts
from undersong.judges.llm.prompt_fingerprint import questions_hash
from undersong.judges.llm.prompts import render_question, shipped_prompts
from undersong.judges.llm.response import answer_schema
from undersong.judges.protocol import Question

if TYPE_CHECKING:
    from undersong.judges.llm.client import Schema

DEPTHS = ("standard", "thorough")
LEAST, MOST = 0.05, 2.0  # tokens a byte that a fit may give; beyond lies no tokenizer, but a fit to too little spread


class AnswerSizes(Protocol):
    """The part of a ledger that tells what kept answers took."""

    def sizes(self, judge: str, prompt_hash: str, most: int) -> list[tuple[str, int, int, int]]:
        """(depth, bytes of the user part, tokens in, tokens out) of the first ``most`` answers."""
        ...

    def cached_share(self, judge: str, prompt_hash: str) -> float:
        """Which share of the input of all answers came from the provider's cache."""
        ...


class TokenRates(NamedTuple):
    """Tokens of a question = ``fixed`` of its depth + ``per_byte`` times the bytes of its user part; answers by depth.

    ``learned_from`` is how many kept answers this stands on; 0 = a rule of thumb. Answers include ``thinking``, which
    is an assumption of the rule of thumb; ``cached`` is the share of the input that came from the provider's cache,
    None = not measured.
    """

    fixed: dict[str, float]
    per_byte: float
    answer: dict[str, float]
    learned_from: int
    thinking: int = 0
    cached: float | None = None

    def of(self, question: Question) -> tuple[int, int]:
        """(tokens in, tokens out) of a question."""
        depth = "thorough" if question.route.depth == "thorough" else "standard"
        sent = len(render_question(question).user.encode())
        return round(self.fixed[depth] + self.per_byte * sent), round(self.answer[depth])


def rule_of_thumb(tokens: Tokens, judge: str = "") -> TokenRates:
    """The rule of thumb of ``prices.yaml``, with thinking before each answer of a model that does so by default."""
    effort = judge.partition("@")[0].partition("+")[2]
    thinks = effort != "none" and bool(effort or model_facts(judge).thinking)
    thinking = tokens.thinking if thinks else 0
    per_byte = 1 / tokens.bytes_each
    fixed = (_system_bytes() + schema_bytes(answer_schema)) * per_byte
    return TokenRates(
        dict.fromkeys(DEPTHS, fixed), per_byte, dict.fromkeys(DEPTHS, float(tokens.answer + thinking)), 0, thinking
    )


def rates(judge: str, ledger: AnswerSizes | None) -> TokenRates:
    """The rates of a judge: learned from the first answers that are kept of it, or the rule of thumb.

    Tokens are linear in the bytes of the question, with an offset per depth; a depth that was not asked yet has that of
    the other, since both have one prompt.
    """
    tokens = load_prices().tokens
    sizes = ledger.sizes(judge, questions_hash(), tokens.learn_from) if ledger is not None else []
    if len(sizes) < tokens.learn_from:
        return rule_of_thumb(tokens, judge)
    cached = ledger.cached_share(judge, questions_hash()) if ledger is not None else None
    per_byte = _slope(sizes)
    offsets = {depth: _mean([taken - per_byte * sent for d, sent, taken, _ in sizes if d == depth]) for depth in DEPTHS}
    answers = {depth: _mean([out for d, _, _, out in sizes if d == depth]) for depth in DEPTHS}
    fixed = {depth: _other(offsets, depth) for depth in DEPTHS}
    every = _mean([float(out) for *_, out in sizes]) or 0.0
    return TokenRates(
        fixed, per_byte, {depth: every if a is None else a for depth, a in answers.items()}, len(sizes), 0, cached
    )


def _slope(sizes: Sequence[tuple[str, int, int, int]]) -> float:
    """Tokens a byte by least squares within each depth; the plain ratio where all questions are of one length."""
    x: list[float] = []
    y: list[float] = []
    for depth in DEPTHS:
        of_depth = np.array([(sent, taken) for d, sent, taken, _ in sizes if d == depth], dtype=float).reshape(-1, 2)
        if len(of_depth):
            centred = of_depth - of_depth.mean(axis=0)
            x.extend(centred[:, 0])
            y.extend(centred[:, 1])
    spread = float(np.dot(x, x))
    whole = sum(sent + _system_bytes() for _, sent, _, _ in sizes)
    ratio = sum(taken for _, _, taken, _ in sizes) / whole
    return float(np.clip(np.dot(x, y) / spread, LEAST, MOST)) if spread > 0 else ratio


def _other(offsets: dict[str, float | None], depth: str) -> float:
    own = offsets[depth]
    if own is not None:
        return own
    return next(value for value in offsets.values() if value is not None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def schema_bytes(schema: Schema) -> int:
    """UTF-8 bytes of the form of an answer: providers put it before the question, and count it."""
    return len(msgspec.json.encode(schema(lengths=False)))


def _system_bytes() -> int:
    return len(shipped_prompts().rubric.encode())
