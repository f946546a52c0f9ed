"""Routes, evaluations and their evidence: what the router decided and what a judge answered."""

from __future__ import annotations

from typing import Literal

from undersong.models.message import Depth, Domain, Record, State, Tier, TraitScores, Width


class Route(Record, frozen=True, kw_only=True):
    """How deep and how wide a message is read, and why; ``tier_before`` is the tier without thread signals."""

    message_id: str
    tier: Tier
    tier_before: Tier
    depth: Depth
    width: Width
    reasons: tuple[str, ...] = ()
    sampled: bool = False


class Quote(Record, frozen=True, kw_only=True):
    """Verbatim evidence: ``text`` is the message's text at ``start:end``; ``sha256`` over the whole message text."""

    message_id: str
    text: str
    start: int
    end: int
    sha256: str


class Indicator(Record, frozen=True, kw_only=True):
    """An indicator that a judge saw, with its quote where it gave one."""

    id: str
    confidence: float | None = None
    quote: str | None = None


class Usage(Record, frozen=True, kw_only=True):
    """What answers took: requests that were answered, and tokens as the provider counts them.

    ``input`` includes ``cached`` (read from the provider's cache) and ``written`` (put there). ``cost`` in USD is None
    where the price of a model is not known. ``estimated`` counts the requests whose tokens the provider did not name.
    """

    calls: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: float | None = 0.0
    estimated: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The sum; a cost that is not known makes it unknown."""
        priced = self.cost is not None and other.cost is not None
        return Usage(
            calls=self.calls + other.calls,
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if priced else None,
            estimated=self.estimated + other.estimated,
        )


class Stance(Record, frozen=True, kw_only=True):
    """How a message stands towards a claim of the other side, as a judge reads it; ``claim`` in the judge's words."""

    position: Literal["holds", "concedes", "neutral"]
    claim: str = ""


class PanelAnswer(Record, frozen=True, kw_only=True):
    """What one judge of a panel answered; ``traits`` is None unless ``state`` is scored, ``reason`` says why.

    ``raw`` and ``model`` as in a Reading.
    """

    judge: str
    state: State
    traits: TraitScores | None = None
    reason: str | None = None
    raw: str | None = None
    model: str | None = None


class Reading(Record, frozen=True, kw_only=True):
    """What an LLM judge gave beside scores and indicators, and what became of its answer.

    ``mechanisms`` and ``acts`` (request, complies, refuses) each with a quote that stands in the message. ``rejected``
    counts what was dropped from the answer, by kind. ``cut`` is how many earlier messages the question left out.
    ``shortened`` is how many texts, calls and results of tools it did not show whole.
    ``raw`` is the text of the answer that counts, as it came. ``usage`` covers every paid answer to this question.
    ``depth`` is that of the tier, None in readings of versions that did not record it. ``reasons``: negative trait that
    is marked above 0 → the judge's short reason, which is not checked against the message.
    ``model`` is the model that answered by its own account, None where it is the one that was asked. ``panel`` are the
    answers of the judges of a panel, in the order of ``--judge``; () where one judge was asked.
    ``unmapped`` are the judge's own scores in a row whose scores went through maps (`judge validate --apply`).
    """

    mechanisms: tuple[Indicator, ...] = ()
    acts: tuple[Indicator, ...] = ()
    stance: Stance | None = None
    rejected: dict[str, int] = {}
    cut: int = 0
    usage: Usage = Usage()
    raw: str | None = None
    shortened: int = 0
    depth: Depth | None = None
    reasons: dict[str, str] = {}
    model: str | None = None
    panel: tuple[PanelAnswer, ...] = ()
    unmapped: TraitScores | None = None


class Evaluation(Record, frozen=True, kw_only=True):
    """What a judge said of one message. ``traits`` is None unless ``state`` is scored; ``reason`` says why.

    Where it is scored, ``traits`` has all twelve; one that is None does not apply, as accuracy to a greeting.

    ``indicators`` None = not judged, () = judged, none. ``judge`` is its id, ``judge_hash`` covers model and
    prompt, ``message_hash`` and ``context_hash`` what it read. ``cost`` in USD.
    """

    message_id: str
    state: State
    judge: str
    judge_hash: str
    message_hash: str
    context_hash: str = ""
    traits: TraitScores | None = None
    indicators: tuple[Indicator, ...] | None = None
    signals: dict[str, float] = {}
    domain: Domain | None = None
    engines: dict[str, str] = {}
    spans: dict[str, tuple[int, int]] = {}
    mechanisms: dict[str, float] | None = None
    width: Width = "message"
    reason: str | None = None
    tokens: int | None = None
    cost: float = 0.0
    reading: Reading | None = None
