"""Why the offline judge scored a message as it did, in lines for ``undersong explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from undersong.models import Evaluation, Message

WORDS = 3  # told per trait


def why_lines(evaluation: Evaluation, message: Message, traits: Iterable[str]) -> Iterator[str]:
    """The kind of the text, the words that raised ``traits``, and the sentence of each signal that is .5 or more.

    Nothing for another judge, or where the artefacts of today are not those that gave the scores.
    """
    if evaluation.judge != "offline" or evaluation.state != "scored":
        return
    from undersong.judges.explain import word_contributions
    from undersong.judges.offline import open_judge

    if evaluation.domain == "unmeasured":
        yield "  unlike the text that the judge was measured on: its trait scores give an order, no levels"
    judge = open_judge("")
    if judge.hash == evaluation.judge_hash:
        for trait in traits:
            raised = [
                each for each in word_contributions(judge.artefacts.heads, message.text, trait) if each.share > 0
            ][:WORDS]
            if raised:
                yield f"  {trait} was raised by " + ", ".join(f"“{each.words}” ({each.share:+.3f})" for each in raised)
    for name, (start, end) in sorted(evaluation.spans.items(), key=lambda item: -evaluation.signals[item[0]]):
        quote = " ".join(message.text[start:end].split())
        yield f"  {name} {evaluation.signals[name]:.2f}: “{quote}”"
