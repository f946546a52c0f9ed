"""What moved a finding's scores, told of the masked texts: only words that still stand there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from undersong.judges.ngrams import words_of
from undersong.models import Finding, Quote, Why
from undersong.redact.secrets import Masked, Masker

Texts = Mapping[tuple[str, str], Masked]
MaskQuote = Callable[[Quote, Masker, Masked | None], Quote]


def masked_why(finding: Finding, masker: Masker, texts: Texts, mask: MaskQuote) -> Finding:
    """The finding with its words and sentences as they stand in the masked ``texts``, by conversation and id."""
    if finding.why is None:
        return finding
    return msgspec.structs.replace(finding, why=tuple(_masked(finding, masker, texts, mask)))


def _masked(finding: Finding, masker: Masker, texts: Texts, mask: MaskQuote) -> Iterator[Why]:
    for why in finding.why or ():
        text = texts.get((why.conversation, why.message_id))
        yield msgspec.structs.replace(
            why,
            conversation=masker.name(why.conversation),
            message_id=masker.name(why.message_id),
            words=() if text is None else _remaining_words(why, masker, text),
            sentence=why.sentence and mask(why.sentence, masker, text),
        )


def _remaining_words(why: Why, masker: Masker, text: Masked) -> tuple[tuple[str, float], ...]:
    if not text.spans:
        return why.words
    there = set(words_of(text.text)[0])
    return tuple(each for each in why.words if each[0] in there and not masker.text(each[0]).spans)
