"""Quality → the tables that people read: on the terminal, and in the model card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

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

The raw score of triage, another model of such labels ([its card](../triage/MODEL_CARD.md)), is added to each
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
    return TRIAGE_CARD.format(
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


TRIAGE_CARD = """\
# Model card: triage

Written by the training program; do not edit it by hand.

- File: `triage.model`, {size} bytes, SHA-256 `{sha256}`
- Trained on {messages} labelled messages by {authors} authors; {harmful} have a negative trait of {above} or more
- Source of the labels: {sources}
- Licence of the labels: {licenses}

## What it does

One number per message, free: the probability that the judge behind the labels would give it any negative trait of
{above} or more. The router reads what is most probable first. It decides what is **read**, never what is found.

A linear model over hashed features of the message alone: the first {sizes} bytes from each word's start on; present or
not, weighted by how few authors use them, each size to length 1, with shares {shares}. Ridge regression, alpha {alpha},
on the highest negative trait and the mean of the six, half each. A feature counts when {fewest} authors (by size) share
it. A logistic curve turns the sum into a probability. Of a text beyond {longest} characters the first and the last half
of that are looked at.

Flags of phrases, length, capitals, links, digits and question marks are left out: out of fold they lowered the figures
(`bench/triage.py` prints the comparison), and a flagged message is routed by its flags anyway. So a change in a phrase
file needs no new training.

## How good it is

Out of fold, {folds} folds, no author on both sides, [95 % interval over resampled authors].

{figures}

The features and shares were chosen among about 80 variants by these same figures, so they are a little optimistic, and
the interval does not cover that choice. Other hashes of the same features give an AUC that differs by about .004 and a
recall that differs by about .01 (standard deviations).

## Calibration

Model and curve both fitted on other authors.

{reliability}

## Recall by threshold

Out of fold; `--recall R` takes the highest threshold that reached R here. On other text the recall may be another: the
audit sample of a run measures what was missed in it.

{recalls}

## Where it fails

- It estimates one LLM judge on agent posts (Moltbook). On chat transcripts, mail or code review, and in languages other
  than English, it is unmeasured; expect an order close to chance, and read the audit sample's estimate.
- It sees one message and nothing around it: the warm opening of a con is innocent by itself. That is what reading
  backwards is for.
- Whoever knows the weights can write around them. The audit sample is what cannot be written around.

## Train it again

    python train/triage.py --labels LABELS.jsonl --out DIR

A line of LABELS.jsonl is as for `train/offline_judge.py`. Needs scikit-learn: `pip install 'undersong[train]'`.
"""
