"""Models or authors side by side: messages, harmful scores, findings and claims of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from undersong.report.claims_view import WORDS
from undersong.serve.library import Library
from undersong.stores.reviewing import evidence_places
from undersong.stores.sql.browsing import GroupBy, ScoreFigures

STALE = 60.0  # seconds: the figures of a minute ago are as good
SHOWN = 100  # models or authors; the others are counted
FEW = 30  # scored messages below which a share says little, and says so


@dataclass(frozen=True)
class ComparedGroup:
    """One model or author. ``harmful`` counts the scored messages with a harmful trait of .5 or more.

    ``low`` and ``high`` bound its share with 95 % (Wilson); None where nothing was scored with levels.
    """

    name: str
    messages: int
    scored: int
    ranked: int
    harmful: int
    low: float | None
    high: float | None
    findings: int
    likely: int
    claims: dict[str, int]

    @property
    def share(self) -> float | None:
        """The share of the scored messages that is harmful."""
        return self.harmful / self.scored if self.scored else None

    @property
    def few(self) -> bool:
        """Whether so few were scored that the share says little."""
        return self.scored < FEW

    @property
    def against(self) -> int:
        """Claims that something speaks against."""
        return self.claims.get("contradicted", 0) + self.claims.get("disputed", 0)

    @property
    def claimed(self) -> str:
        """The claims in words, "" without any."""
        total = sum(self.claims.values())
        parts = [f"{number} {WORDS[state]}" for state, number in self.claims.items()]  # type: ignore[index]
        return f"{total}: {', '.join(parts)}" if total else ""


def compared(library: Library, group: GroupBy) -> tuple[ComparedGroup, ...]:
    """The groups, the most messages first; worked out once for each state of the store."""
    return library.cached(f"compare {group}", lambda: tuple(_groups(library, group)), stale=STALE)


def _groups(library: Library, group: GroupBy) -> Iterator[ComparedGroup]:
    figures = library.store.score_figures(library.judge_hash(), group)
    findings, likely = _finding_counts(library, group)
    claims = _claim_counts(library, group)
    unknown = ScoreFigures(0, 0, 0, 0)
    numbers = {name: figures.get(name, unknown) for name in {*figures, *findings, *claims}}
    for name, own in sorted(numbers.items(), key=lambda pair: (-pair[1].messages, pair[0])):
        low, high = _wilson(own.harmful, own.scored)
        yield ComparedGroup(name, *own, low, high, findings[name], likely[name], dict(claims[name]))


def _finding_counts(library: Library, group: GroupBy) -> tuple[Counter[str], Counter[str]]:
    findings, likely = Counter[str](), Counter[str]()
    every = list(library.store.findings())
    places = {place for finding in every for place in evidence_places(finding)} if group == "model" else ()
    models = library.store.models_of(sorted(places))
    for finding in every:
        name = finding.agent
        if group == "model":
            own = Counter(models[place] for place in evidence_places(finding) if place in models)
            name = own.most_common(1)[0][0] if own else ""
        findings[name] += 1
        likely[name] += not finding.is_lead
    return findings, likely


def _claim_counts(library: Library, group: GroupBy) -> defaultdict[str, Counter[str]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for claim in library.store.claims():
        counts[claim.model if group == "model" else claim.agent][claim.state] += 1
    return counts


def _wilson(hits: int, tries: int) -> tuple[float | None, float | None]:
    """The 95 % interval of a share."""
    if not tries:
        return None, None
    z = 1.959964
    middle = (hits + z * z / 2) / (tries + z * z)
    half = z * ((hits * (tries - hits) / tries + z * z / 4) ** 0.5) / (tries + z * z)
    return max(0.0, middle - half), min(1.0, middle + half)
