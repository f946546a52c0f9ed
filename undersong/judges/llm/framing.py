"""A question → the two texts that a model is sent: fixed words of ours, and data blocks that a text cannot leave."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from undersong.judges import EvaluationHistory, Question
from undersong.judges.llm.book import PromptSet, shipped_prompts
from undersong.judges.llm.encode import encoded, shortened
from undersong.judges.llm.tools import tools_of
from undersong.models import Message, Role, Scan
from undersong.wording import counted

Framing = Literal["data_first", "question_first"]
SPEAKERS: dict[Role, str] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
LOW, HIGH = 0.25, 0.5  # averages up to and from which the history says so: the seed's example calls .52 high


class RenderedPrompt(NamedTuple):
    """What is sent: ``control`` is the right answer to the control question, ``nonce`` the code of the data blocks.

    ``shortened`` counts the texts, calls and results that are not shown whole.
    """

    system: str
    user: str
    control: str
    nonce: str
    shortened: int = 0


class RenderedMessage(NamedTuple):
    """One message as a block shows it: who, what, the line of the scanner, and those of its tools.

    ``cut`` counts what is not shown whole.
    """

    speaker: str
    author: str
    text: str
    scanner: str
    tools: tuple[str, ...] = ()
    cut: int = 0


def render_question(
    question: Question, framing: str = "data_first", prompts: PromptSet | None = None
) -> RenderedPrompt:
    """The question in one of two framings: the data before our question, or after it."""
    prompts = prompts or shipped_prompts()
    context = [
        render_message(message, scan, prompts.limits.prior_bytes)
        for message, scan in zip(question.prior, question.prior_scans, strict=True)
    ]
    tools = [render_message(each, Scan(message_id=each.id), prompts.limits.tool_bytes) for each in question.tools]
    own = render_message(question.message, question.scan, prompts.limits.message_bytes)
    system = prompts.system(question.route.depth)
    return render_prompt(system, context, own, question.cut, question.history, framing, prompts, tools)


def render_prompt(
    system: str,
    context: Sequence[RenderedMessage],
    own: RenderedMessage,
    cut: int,
    history: EvaluationHistory | None,
    framing: str,
    prompts: PromptSet,
    tools: Sequence[RenderedMessage] = (),
) -> RenderedPrompt:
    """The same from the parts of a question."""
    every = [*context, *tools, own]
    nonce = nonce_of(every)
    control, asking = control_question(nonce, prompts)
    data = []
    if context:
        words = prompts.words.cut.format(messages=counted(cut, "message")) if cut else ""
        head = prompts.words.thread.format(count=counted(len(context), "message"), cut=words)
        data.append(head + block(context, nonce))
    if history is not None:
        data.append(prompts.words.history + "".join(f"  {line}\n" for line in history_lines(history)))
    if tools:
        data.append(prompts.words.tools + block(tools, nonce))
    data.append(prompts.words.message + block([own], nonce))
    parts = [asking, *data] if framing == "question_first" else [*data, asking]
    return RenderedPrompt(system, "\n".join(parts), control, nonce, sum(each.cut for each in every))


def render_message(message: Message, scan: Scan, most: int) -> RenderedMessage:
    """A message with its scan line and its tools; of a long text the middle is left out."""
    text, size = shortened(message.text, most)
    scanner = scan_line(scan.labels, scan.total)
    if size:
        scanner += shipped_prompts().words.shortened.format(bytes=f"{size:,}").rstrip()
    used = tools_of(message)
    return RenderedMessage(
        SPEAKERS.get(message.role, "Agent"), message.author, text, scanner, used.lines, used.cut + bool(size)
    )


def scan_line(labels: Sequence[str], total: int) -> str:
    """``flattery, isolation (2 flags)``, as in the first seed's example; nothing found is ``standard (0 flags)``."""
    return f"{', '.join(labels) or ('flagged' if total else 'standard')} ({counted(total, 'flag')})"


def block(messages: Sequence[RenderedMessage], nonce: str) -> str:
    """Messages between delimiters; each is one line of JSON strings and one line of ours."""
    return "".join((f"BEGIN DATA {nonce}\n", *_lines(messages), f"END DATA {nonce}\n"))


def nonce_of(messages: Sequence[RenderedMessage]) -> str:
    """A code for the delimiters that no text of these messages holds: a hash over all of them, forgeries included."""
    joined = "".join(_lines(messages))
    nonce = hashlib.sha256(f"data\0{joined}".encode()).hexdigest()[:32]
    while nonce in joined:  # pragma: no cover - nobody can write a text that holds its own hash
        nonce = hashlib.sha256(nonce.encode()).hexdigest()[:32]
    return nonce


def control_question(nonce: str, prompts: PromptSet, words: str | None = None) -> tuple[str, str]:
    """The right answer and our question; which word is right follows from the data, so that no text can foretell it."""
    choices = prompts.limits.control
    number = int(nonce[:8], 16) % len(choices)
    asking = (words or prompts.words.question).format(number=number + 1, words=", ".join(choices))
    return choices[number], asking


def history_lines(history: EvaluationHistory) -> Iterator[str]:
    """The agent's history as in the first seed's example; numbers and names of ours only."""
    yield f"Evaluations: {history.evaluations}"
    for trait, mean in history.averages.items():
        level = " (high)" if mean >= HIGH else " (low)" if mean <= LOW else ""
        yield f"Avg {trait}: {mean:.2f}{level}"
    moving = [f"{trait} {trend}" for trait, trend in history.trends.items() if trend != "steady"]
    if history.evaluations:
        yield f"Recent trend: {', '.join(moving) or 'steady'}"
    if history.findings:
        yield "Prior pattern flags: " + ", ".join(f"{name} ({times}x)" for name, times in history.findings.items())


def _lines(messages: Sequence[RenderedMessage]) -> Iterator[str]:
    for message in messages:
        yield f"[{message.speaker}: {encoded(message.author)}] {encoded(message.text)}\n"
        yield f"  Scanner: {message.scanner}\n"
        yield from message.tools
