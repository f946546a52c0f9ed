"""The figures of triage as the tables that people read: on the terminal, and in the model card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.judges.labels import LabelledMessage
from undersong.judges.quality import HARMFUL
from undersong.judges.training import FOLDS
from undersong.triage.features import LONGEST, SIZES
from undersong.triage.model import TriageMetadata
from undersong.triage.quality import ROUTED, Ranked, Reliability
from undersong.triage.training import ALPHA, FEWEST_AUTHORS, SHARES

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
        alpha=ALPHA,
        shares=" : ".join(f"{share:g}" for share in SHARES),
        fewest=", ".join(map(str, FEWEST_AUTHORS)),
        sizes=", ".join(map(str, SIZES)),
        longest=f"{LONGEST:,}",
        figures=figures({"triage": ranking}),
        reliability=reliability_table(bins),
        recalls=recall_table(meta),
    )


def _names(values: Iterable[str]) -> str:
    counts = Counter(value or "not stated" for value in values)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


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
