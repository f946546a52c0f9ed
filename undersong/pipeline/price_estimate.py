"""What it would cost to have an LLM judge read the sequences of a run that none read; nobody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undersong.judges.llm.model_spec import tier_specs_of
from undersong.judges.llm.pricing import load_prices, price_of
from undersong.judges.llm.tokens import rates
from undersong.judges.protocol import asks_models
from undersong.models import Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import has_sequence
from undersong.pipeline.evaluate import RoutedThread, questions_of
from undersong.pipeline.sequence_plan import plan_sequences, scanned_rows
from undersong.stores.protocol import Store

SUGGESTED = "anthropic:claude-sonnet-5-5"  # the judge that help texts name; any other is named the same way
PARAMETER = "llm_estimate"


class PriceEstimate:
    """Takes threads one by one; a run with a judge that asks models needs no estimate and keeps nothing."""

    def __init__(self, judge: str) -> None:
        self._needed = not asks_models(judge)
        self._rows: list[Row] = []
        self._cost = 0.0  # of messages; not counted on once a sequence could be read, which is what is priced then
        self._by_sequence = False
        if self._needed:
            self._judges = {
                tier: (price_of(spec.name), rates(spec.name, None)) for tier, spec in tier_specs_of(SUGGESTED).items()
            }
            self._is_priced = self._judges["deep"][0].cost(1, 1) is not None

    def add(self, thread: RoutedThread) -> None:
        """Count a thread."""
        if not self._needed:
            return
        rows = tuple(scanned_rows(thread))
        self._rows += rows
        self._by_sequence = self._by_sequence or (self._is_priced and has_sequence(rows))
        if self._by_sequence:
            return
        for question in questions_of(thread, read_all=False):
            price, sizes = self._judges[question.route.tier]
            tokens_in, tokens_out = sizes.of(question)
            stable = sizes.fixed["thorough" if question.route.depth == "thorough" else "standard"]
            self._cost += price.cost(tokens_in, tokens_out, cached=min(round(stable), tokens_in)) or 0.0

    def parameters(self, store: Store, seed: int, rules: Sequence[PatternRule]) -> dict[str, Any]:
        """The estimate as a parameter of the case: of whole sequences, of messages where nobody speaks thrice."""
        if not self._needed:
            return {}
        planned = plan_sequences(self._rows, store, [self._judges["deep"]], seed, rules)
        whole = planned.sequences > 0 and planned.cost is not None
        cost = planned.cost if whole and planned.cost is not None else self._cost
        facts = {"judge": SUGGESTED, "read": "sequences" if whole else "messages", "usd": round(cost, 2)}
        return {PARAMETER: facts | {"prices_as_of": load_prices().as_of.isoformat()}}
