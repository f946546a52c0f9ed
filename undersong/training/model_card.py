"""Model cards: the figures of a training as tables, and the Markdown pages around them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.datafiles.yaml_loader import CARDS
from undersong.ml.ood_check import DomainCheck
from undersong.ml.triage import LONGEST, SIZES, TriageMetadata
from undersong.models import TRAITS
from undersong.training.datasets import LabelledMessage
from undersong.training.evaluation import HARMFUL, Quality
from undersong.training.trait_heads import ALPHA, FEWEST_AUTHORS, FOLDS
from undersong.training.triage import ALPHA as TRAINING_ALPHA
from undersong.training.triage import FEWEST_AUTHORS as TRAINING_FEWEST_AUTHORS
from undersong.training.triage import ROUTED, SHARE, SHARES, Ranked, Reliability


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
    return _template("trait_heads.md").format(
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
        sources=_names(row.source for row in rows),
        licenses=_names(row.license for row in rows),
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


def _names(values: Iterable[str]) -> str:
    counts = Counter(value or "not stated" for value in values)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


REPORTED_RECALLS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


def figures(scorers: dict[str, Ranked]) -> str:
    """AUC and recall of some scorers, as a Markdown table."""
    lines = [f"| | AUC | recall, {ROUTED:.0%} routed |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {each.auc} | {each.recall} |" for name, each in scorers.items()])


def reliability_table(bins: Iterable[Reliability]) -> str:
    """Said and seen, as a Markdown table."""
    lines = ["| probability | messages | mean of it | harmful |", "|---|---|---|---|"]
    return "\n".join(
        lines + [f"| {b.low:.2f}-{b.high:.2f} | {b.messages} | {b.expected:.3f} | {b.harmful:.3f} |" for b in bins]
    )


def recall_table(meta: TriageMetadata) -> str:
    """Threshold, recall and routed share, as a Markdown table."""
    lines = ["| recall | threshold | messages routed |", "|---|---|---|"]
    chosen = [next(each for each in meta.reached if each.recall >= recall) for recall in REPORTED_RECALLS]
    return "\n".join(lines + [f"| {r.recall:.3f} | {r.threshold:.3f} | {r.share:.1%} |" for r in chosen])


def triage_card(
    rows: Sequence[LabelledMessage],
    meta: TriageMetadata,
    ranking: Ranked,
    bins: Iterable[Reliability],
    sha256: str,
    size: int,
) -> str:
    """The model card, in Markdown."""
    return _template("triage.md").format(
        sha256=sha256,
        size=size,
        messages=meta.messages,
        authors=meta.authors,
        harmful=meta.harmful,
        above=HARMFUL,
        sources=_names(row.source for row in rows),
        licenses=_names(row.license for row in rows),
        folds=min(FOLDS, meta.authors),
        alpha=TRAINING_ALPHA,
        shares=" : ".join(f"{share:g}" for share in SHARES),
        fewest=", ".join(map(str, TRAINING_FEWEST_AUTHORS)),
        sizes=", ".join(map(str, SIZES)),
        longest=f"{LONGEST:,}",
        figures=figures({"triage": ranking}),
        reliability=reliability_table(bins),
        recalls=recall_table(meta),
    )


def _template(name: str) -> str:
    return (CARDS / name).read_text(encoding="utf-8")
