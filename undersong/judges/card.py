"""Quality → the tables that people read: on the terminal, and in the model card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.judges.blend import SHARE
from undersong.judges.domain import DomainCheck
from undersong.judges.labels import LabelledMessage
from undersong.judges.quality import HARMFUL, Quality
from undersong.judges.training import ALPHA, FEWEST_AUTHORS, FOLDS
from undersong.models import TRAITS


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
    return CARD.format(
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


CARD = """\
# Model card: trait heads of the offline judge

Written by the training program; do not edit it by hand.

- File: `trait_heads.model`, {size} bytes, SHA-256 `{sha256}`
- Trained on {messages} labelled messages by {authors} authors; {harmful} of them have a negative trait of .5 or more
- Source of the labels: {sources}
- Licence of the labels: {licenses}
- Seed of the intervals: {seed}

## What it does

Twelve linear heads over the word 1-2-grams and character 2-5-grams of one message (hashed, present or not, weighted by
how few authors use them, each block to length 1), ridge regression with alpha {alpha}. The target is half the label,
half its rank. An n-gram counts when {words} (words) or {chars} (characters) authors share it, so that an author's
signature is not learnt as a trait.

The raw score of triage, another model of such labels ([its card](../../triage/models/MODEL_CARD.md)), is added to each
head with {share} of the head's own spread: harmful traits rise with it, the others fall.

A score is the mean label of messages with such a raw score, so it **shrinks towards the middle**: it is an estimate of
what the judge behind the labels would have said, not a second opinion and not a probability. It sees one message and
nothing around it. The same text has the same scores in every batch and on every machine.

## How good it is

Out of fold, {folds} folds, no author on both sides. Spearman's rank correlation with the label, [95 % interval over
resampled authors]. The baselines are least-squares lines through the same folds.

{table}

{within}

The features, alpha and the form of the target of the shipped model were chosen among about 150 variants by this same
figure, so it is a little optimistic, and the interval does not cover that choice. Figures on authors that took no part
in the choice are still to be measured.

What a fixed threshold finds, out of fold:

{thresholds}

So a rule with an absolute threshold sees less through this judge than through the judge that made the labels.

## Where its levels hold

A check says for each text whether it is of the kind of the labels ({kind}): by authors held out {kept:.0%} of them
are taken for it. Of texts of another kind, each kind held out of the check's training, {refused:.0%} on average are
taken for unmeasured: {refused_by}. Where a text is unmeasured, its trait scores are **ranks within the corpus**, and
no rule with a threshold on them is applied.

## Where it fails

- **Other domains: near chance.** Heads trained on one kind of conversation do not carry over to another. On chat
  transcripts, mail, code review or anything unlike what it was trained on, its scores are at best an order.
- **Languages other than English are unmeasured**, and so are messages of a few words: their scores lie near the mean.
- **The scores of the negative traits go together**, as their labels do (correlations of .73 to .89 in those of the
  shipped model): a high `deception` beside a high `manipulation` is not two findings.
- It cannot know lies, factual accuracy or fabrication: `accuracy`, `deception` and `fabrication` are scored by style.
- Labels carry their judge's faults. The shipped model's come from an LLM judge that saw keyword flags, whose rubric
  changed in between, and that differs from itself by .06 to .12 on average when it scores a message again.
- Whoever knows the n-grams can write around them.

## Train it again

    undersong judge train LABELS.jsonl --out MODEL_DIR
    undersong audit FILE --judge offline:MODEL_DIR

A line of LABELS.jsonl is `{{"author": "...", "text": "...", "traits": {{"virtue": 0.7, ...}}}}` with all twelve traits,
0 to 1; `time` (ISO 8601), `source` and `license` are optional. Needs scikit-learn: `pip install 'undersong[train]'`.
"""
