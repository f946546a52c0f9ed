"""What moved the scores of a finding's messages, in words."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.models import Finding, Why


def why_words(finding: Finding, message_id: str, conversation: str | None) -> tuple[str, ...]:
    """A line for each trait of a message that is told, with the words that moved it, and for each signal.

    ``conversation`` None: whatever it is. Empty where the judge cannot tell.
    """
    own = (each for each in finding.why or () if each.message_id == message_id)
    return tuple(_line(each) for each in dict.fromkeys(own) if conversation in (None, each.conversation))


def _line(why: Why) -> str:
    return f"{why.name.replace('_', ' ')} {why.score:.2f}: {'; '.join(_parts(why))}"


def _parts(why: Why) -> Iterator[str]:
    if why.words:
        yield "moved most by " + ", ".join(f"“{words}” ({share:+.3f})" for words, share in why.words)
    if why.sentence is not None:
        yield f"shown most by “{' '.join(why.sentence.text.split())}”"
    if not why.words and why.sentence is None:
        yield "no word of it by itself"
