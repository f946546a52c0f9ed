"""Model cards: the figures of a training as tables, and the Markdown pages around them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.datafiles.yaml_loader import CARDS
from undersong.ml.ood_check import DomainCheck
from undersong.models import TRAITS
from undersong.training.datasets import LabelledMessage
from undersong.training.evaluation import HARMFUL, Quality
from undersong.training.trait_heads import ALPHA, FEWEST_AUTHORS, FOLDS
from undersong.training.triage import SHARE


def table(quality: Quality) -> str:
    """Spearman per trait with intervals, the judge beside the baselines, as a Markdown table."""
    names = list(quality.scorers)
    scorers = quality.scorers.values()
    lines = [
        _line("", names),
        "|---" * (len(names) + 1) + "|",
        *(_line(trait, [each.spearman[trait] for each in scorers]) for trait in TRAITS),
        _line("**mean of the twelve**", [each.mean for each in scorers]),
        _line(f"AUC, any negative trait ≥ {HARMFUL}", [each.auc for each in scorers]),
    ]
    return "\n".join(lines)


def thresholds(quality: Quality) -> str:
    """What a fixed threshold finds among the labelled messages, a line each."""
    return "\n".join(
        f"- {t.trait} > {t.above}: {t.labelled} by label, {t.scored} by score, {t.both} by both; "
        f"as many as by label score {t.cut:.2f} or more, {t.cut_both} of them rightly"
        for t in quality.thresholds
    )


def within(quality: Quality) -> str:
    """The same among messages of one month: what is left when the drift of topics and labels over time is taken out."""
    if quality.within_month is None:
        return "The labels carry no times, so agreement within a month cannot be given."
    return f"Mean of the twelve among messages of one month: {quality.within_month:.3f}."


def card(rows: Sequence[LabelledMessage], quality: Quality, domain: DomainCheck, data: bytes, seed: int) -> str:
    """The model card of the trait heads (``data`` is their file) and their domain check, in Markdown."""
    kind = domain.meta.kinds[0]
    return card_template("trait_heads.md").format(
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        kind=kind.name,
        kept=kind.kept,
        refused=kind.refused,
        refused_by=", ".join(f"{name} {share:.0%}" for name, share in kind.refused_by.items()),
        seed=seed,
        messages=quality.messages,
        authors=quality.authors,
        harmful=quality.harmful,
        sources=counted_names(row.source for row in rows),
        licenses=counted_names(row.license for row in rows),
        folds=min(FOLDS, quality.authors),
        alpha=ALPHA,
        share=SHARE,
        words=FEWEST_AUTHORS[0],
        chars=FEWEST_AUTHORS[1],
        table=table(quality),
        within=within(quality),
        thresholds=thresholds(quality),
    )


def _line(name: str, figures: Sequence[object]) -> str:
    return f"| {name} | " + " | ".join(map(str, figures)) + " |"


def counted_names(values: Iterable[str]) -> str:
    """Distinct values with how often each occurs."""
    counts = Counter(value or "not stated" for value in values)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def card_template(name: str) -> str:
    """The text of a model card, with the names of its figures in braces."""
    return (CARDS / name).read_text(encoding="utf-8")
