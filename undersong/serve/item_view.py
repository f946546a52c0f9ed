"""One lead or claim for the person who decides: what was counted, and its messages with what they answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from undersong.models import Lead, LedgerClaim, Message, Review, ReviewKind, ReviewStanding, decisions_of
from undersong.report.claims_view import WORDS, state_words
from undersong.report.display_names import display_names
from undersong.report.opening_phrases import name_of
from undersong.serve.library import Library
from undersong.serve.marking import MarkedRun, Span, beginning, marked
from undersong.stores.reviewing import evidence_places, kind_and_id, reviews_of, standing

BESIDE = 16  # words of the message that one of an item answers
MOST = 12  # messages of a lead that are shown; the conversations have the others


@dataclass(frozen=True)
class ItemTurn:
    """A message; ``own`` where the item rests on it, else it comes before one."""

    message: Message
    runs: tuple[MarkedRun, ...]
    own: bool
    cut: bool = False


@dataclass(frozen=True)
class ItemView:
    """Everything that the page of a lead or claim shows."""

    kind: ReviewKind
    id: str
    title: str
    sentence: str
    question: str
    facts: tuple[str, ...]
    turns: tuple[ItemTurn, ...]
    more: int
    standing: ReviewStanding | None
    reviews: tuple[Review, ...]


def item_view(library: Library, item: Lead | LedgerClaim) -> ItemView:
    """The page of a lead or claim from the store."""
    kind, name = kind_and_id(item)
    title, question, facts = _lead_words(library, item) if isinstance(item, Lead) else _claim_words(item)
    places = evidence_places(item)
    return ItemView(
        kind=kind, id=name, title=title, sentence=item.reason, question=question, facts=facts,
        turns=tuple(_turns(library, item, places[:MOST])), more=len(places[MOST:]),
        standing=standing(library.store, item), reviews=tuple(decisions_of(reviews_of(library.store, item))),
    )  # fmt: skip


def _lead_words(library: Library, lead: Lead) -> tuple[str, str, tuple[str, ...]]:
    places = evidence_places(lead)[:1]
    names = display_names(message for home, name in places for message in library.store.messages(home, [name]))
    who = names.get(lead.agent) or lead.agent.rpartition("/")[2]
    facts = (f"{each.source.replace('_', ' ')}: {each.value:g}{_others(each.compared_with)}" for each in lead.evidence)
    return (
        f"{who}{f' in {lead.conversation}' if lead.conversation else ''}",
        f"Is {names.get(lead.agent) or name_of(lead.agent, lead.conversation or '')} worth looking at?",
        tuple(facts),
    )


def _others(compared_with: float | None) -> str:
    return "" if compared_with is None else f", others {compared_with:g}"


def _claim_words(claim: LedgerClaim) -> tuple[str, str, tuple[str, ...]]:
    facts = [f"A claim of the kind “{claim.kind}”, {state_words(claim)}."]
    facts += [f"The check: {claim.check}"] if claim.check else []
    facts += [f"Before it answered, it wrote: {claim.thought}"] if claim.thought else []
    return f"“{claim.sentence.text}”", f"Is the claim {WORDS[claim.state]}?", tuple(facts)


def _turns(library: Library, item: Lead | LedgerClaim, places: tuple[tuple[str, str], ...]) -> Iterator[ItemTurn]:
    shown: set[tuple[str, str]] = set(places)
    for conversation in dict.fromkeys(name for name, _ in places):
        own = library.store.messages(conversation, [name for home, name in places if home == conversation])
        for message in sorted(own, key=lambda one: one.position):
            for earlier in library.store.transcript(conversation, message.position - 1, message.position - 1):
                if (conversation, earlier.id) not in shown:
                    shown.add((conversation, earlier.id))
                    first, rest = beginning(earlier.text, BESIDE)
                    yield ItemTurn(earlier, marked(first, ()), own=False, cut=bool(rest))
            yield ItemTurn(message, marked(message.text, _quoted(item, message)), own=True)


def _quoted(item: Lead | LedgerClaim, message: Message) -> list[Span]:
    """What is quoted, where that is less than the whole message."""
    return [
        Span(quote.start, quote.end, "quote", "quoted")
        for quote in item.quotes
        if quote.message_id == message.id and len(quote.text.strip()) < len(message.text.strip())
    ]
