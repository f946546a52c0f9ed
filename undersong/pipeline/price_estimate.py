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


MOST = 5000  # messages of coding sessions whose price is not counted yet, while there is nothing else
FEW = 20  # messages in conversations where nobody speaks thrice from which on they are priced, too


class PriceEstimate:
    """Takes threads one by one; a run with a judge that asks models needs no estimate and keeps nothing.

    Sequences are priced where somebody says enough in one conversation, messages where nobody does, and both where the
    input has both: an input that grows never costs less. Of coding sessions alone nothing is priced, since claims and
    checks need no judge: they wait for talk of another kind, and where more than MOST messages wait, there is no price.
    """

    def __init__(self, judge: str) -> None:
        self._needed = not asks_models(judge)
        self._waiting: list[RoutedThread] = []
        self._messages, self._all_work = 0, True
        self._rows: list[Row] = []
        self._cost = 0.0  # of the messages that the router calls for
        self._asked = self._alone = 0  # those messages; messages in conversations without a sequence
        if self._needed:
            self._judges = {
                tier: (price_of(spec.name), rates(spec.name, None)) for tier, spec in tier_specs_of(SUGGESTED).items()
            }

    def add(self, thread: RoutedThread, *, work: bool = False) -> None:
        """Count a thread; ``work``: it is a coding session."""
        if not self._needed:
            return
        self._all_work = self._all_work and work
        if not self._all_work:
            for earlier in (*self._waiting, thread):
                self._count(earlier)
            self._waiting.clear()
            return
        self._waiting.append(thread)
        self._messages += len(thread.conversation.messages)
        if self._messages > MOST:
            self._needed = False
            self._waiting.clear()

    def _count(self, thread: RoutedThread) -> None:
        rows = tuple(scanned_rows(thread))
        self._rows += rows
        self._alone += 0 if has_sequence(rows) else len(rows)
        for question in questions_of(thread, read_all=False):
            price, sizes = self._judges[question.route.tier]
            tokens_in, tokens_out = sizes.of(question)
            stable = sizes.fixed["thorough" if question.route.depth == "thorough" else "standard"]
            self._asked += 1
            self._cost += price.cost(tokens_in, tokens_out, cached=min(round(stable), tokens_in)) or 0.0

    def parameters(self, store: Store, seed: int, rules: Sequence[PatternRule]) -> dict[str, Any]:
        """The estimate as a parameter of the case: what would be read, how much of it, and USD."""
        if not self._needed or self._all_work:
            return {}
        planned = plan_sequences(self._rows, store, [self._judges["deep"]], seed, rules)
        if planned.sequences == 0 or planned.cost is None:
            facts: dict[str, Any] = {"read": "messages", "messages": self._asked, "usd": self._cost}
        elif self._alone < FEW:
            facts = {"read": "sequences", "sequences": planned.sequences, "usd": planned.cost}
        else:
            facts = {"read": "both", "sequences": planned.sequences, "messages": self._asked}
            facts |= {"usd": planned.cost + self._cost, "usd_sequences": round(planned.cost, 2)}
        facts |= {"pairs": planned.pairs} if planned.pairs else {}
        facts |= {"judge": SUGGESTED, "usd": round(facts["usd"], 2), "prices_as_of": load_prices().as_of.isoformat()}
        return {PARAMETER: facts}
