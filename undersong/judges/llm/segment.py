"""A flagged place of a talk → the two texts of the question whether it shows a mechanism."""

from __future__ import annotations

from undersong.judges import Segment
from undersong.judges.llm.book import book
from undersong.judges.llm.framing import Framed, Spoken, block, control_question, nonce_of, spoken
from undersong.models import Message, Scan


def framed_segment(segment: Segment) -> Framed:
    """The one message or two apart, then what stands around them, then the question."""
    limits, words = book().limits, book().words
    own = [_spoken(message, limits.message_bytes // 2) for message in segment.messages]
    around = [_spoken(message, limits.prior_bytes) for message in segment.around]
    nonce = nonce_of([*own, *around])
    asking = words.confirm.format(
        description=book().mechanisms[segment.mechanism].confirm, number="{number}", words="{words}"
    )
    control, question = control_question(nonce, book(), asking)
    parts = [f"# Message {number}\n{block([each], nonce)}" for number, each in enumerate(own, 1)]
    if around:
        parts.append(words.around + block(around, nonce))
    return Framed(book().confirming, "\n".join([*parts, question]), control, nonce)


def _spoken(message: Message, most: int) -> Spoken:
    return spoken(message, Scan(message_id=message.id), most)
