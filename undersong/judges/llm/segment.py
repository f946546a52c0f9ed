"""A flagged place of a talk → the two texts of the question whether it shows a mechanism."""

from __future__ import annotations

from undersong.judges import Segment
from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.framing import (
    RenderedMessage,
    RenderedPrompt,
    block,
    control_question,
    nonce_of,
    render_message,
)
from undersong.models import Message, Scan


def render_segment(segment: Segment) -> RenderedPrompt:
    """The one message or two apart, then what stands around them, then the question."""
    limits, words = shipped_prompts().limits, shipped_prompts().words
    own = [_render_message(message, limits.message_bytes // 2) for message in segment.messages]
    around = [_render_message(message, limits.prior_bytes) for message in segment.around]
    nonce = nonce_of([*own, *around])
    asking = words.confirm.format(
        description=shipped_prompts().mechanisms[segment.mechanism].confirm, number="{number}", words="{words}"
    )
    control, question = control_question(nonce, shipped_prompts(), asking)
    parts = [f"# Message {number}\n{block([each], nonce)}" for number, each in enumerate(own, 1)]
    if around:
        parts.append(words.around + block(around, nonce))
    return RenderedPrompt(shipped_prompts().confirming, "\n".join([*parts, question]), control, nonce)


def _render_message(message: Message, most: int) -> RenderedMessage:
    return render_message(message, Scan(message_id=message.id), most)
