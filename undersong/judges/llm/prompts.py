"""Prompts: the files of ``undersong/data/prompts`` and the taxonomy as the stable part of every question, hashed."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import msgspec

from undersong.core.text import counted
from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.yaml_loader import PROMPTS, file_hash, read
from undersong.judges.protocol import EvaluationHistory, Question, Segment
from undersong.models import Message, Record, Role, Scan, ToolCall, ToolResult

FOLDER = PROMPTS
RUBRIC = ("principle.md", "marks.md", "evidence.md", "reading.md", "answer.md", "examples.md")
SYSTEM = (*RUBRIC, "confirm.md")
DATA = ("mechanisms.yaml", "reading.yaml", "question.yaml")
CONSTRAINTS = "constraints.yaml"
MARKS = 4  # the highest mark; a score is mark / 4


class _StrictPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of the prompt files."""


class MechanismEntry(_StrictPrompts, frozen=True, kw_only=True):
    """What a judge is asked for; ``only_confirm``: only as a second question, never of a single message."""

    description: str
    context: bool
    confirm: str
    only_confirm: bool = False


class MechanismPrompts(_StrictPrompts, frozen=True, kw_only=True):
    """``mechanisms.yaml``."""

    mechanisms: dict[str, MechanismEntry]
    acts: dict[str, str]


class ConstraintPrompts(_StrictPrompts, frozen=True, kw_only=True):
    """``constraints.yaml``: what is asked of each hard constraint, and what does not show one."""

    constraints: dict[str, str]
    innocent: str


class ReadingLimits(_StrictPrompts, frozen=True, kw_only=True):
    """``reading.yaml``: see the file."""

    prior_messages: int
    thread_first: int
    thread_bytes: int
    prior_bytes: int
    message_bytes: int
    tools: int
    tool_bytes: int
    tool_messages: int
    answer_tokens: dict[str, int]
    thinking_tokens: int
    body_bytes: int
    quote_characters: int
    control: tuple[str, ...]
    always_marked: tuple[str, ...]


class QuestionWords(_StrictPrompts, frozen=True, kw_only=True):
    """``question.yaml``: the fixed words of a question."""

    thread: str
    history: str
    message: str
    tools: str
    cut: str
    shortened: str
    question: str
    repair: str
    around: str
    confirm: str


class PromptSet(Record, frozen=True, kw_only=True, dict=True, gc=True):
    """Everything that a question is made of beside the conversation."""

    texts: dict[str, str]
    mechanisms: dict[str, MechanismEntry]
    acts: dict[str, str]
    limits: ReadingLimits
    words: QuestionWords
    hashes: dict[str, str]
    constraints: dict[str, str] = {}  # of second questions alone: in their keys, outside ``hash``

    @cached_property
    def rubric(self) -> str:
        """The system prompt: one for every depth, so that marks compare; always the same bytes, for the caches."""
        return "\n\n".join(part.strip() for part in self._parts()) + "\n"

    @cached_property
    def offered(self) -> frozenset[str]:
        """The mechanisms that a question about one message may be answered with."""
        return frozenset(name for name, each in self.mechanisms.items() if not each.only_confirm)

    @cached_property
    def second_questions(self) -> dict[str, str]:
        """What is asked of a flagged place, by mechanism or hard constraint."""
        return {name: each.confirm for name, each in self.mechanisms.items()} | self.constraints

    @property
    def confirming(self) -> str:
        """The system prompt of ``confirm``."""
        return self.texts["confirm.md"]

    @cached_property
    def hash(self) -> str:
        """SHA-256 over everything that is asked: prompts, limits and taxonomy."""
        parts = (self.rubric, self.confirming, *(self.hashes[name] for name in sorted(self.hashes)))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _parts(self) -> tuple[str, ...]:
        principle, marks, evidence, reading, answer, examples = (self.texts[name] for name in RUBRIC)
        traits, catalogue, mechanisms = map("\n".join, (_traits(), _catalogue(), self._mechanisms()))
        return principle, traits, marks, catalogue, mechanisms, evidence, reading, answer, examples

    def _mechanisms(self) -> Iterator[str]:
        yield "# Mechanisms\n"
        for name, mechanism in self.mechanisms.items():
            if not mechanism.only_confirm:
                yield f"- {name}: {mechanism.description}{' Needs the context.' if mechanism.context else ''}"


@cache
def shipped_prompts() -> PromptSet:
    """The shipped prompts, read once; raises RuleError with file and line."""
    mechanisms_file = read(FOLDER / "mechanisms.yaml", MechanismPrompts)
    constraints = read(FOLDER / CONSTRAINTS, ConstraintPrompts)
    return PromptSet(
        texts={name: (FOLDER / name).read_text(encoding="utf-8") for name in SYSTEM},
        mechanisms=mechanisms_file.mechanisms,
        acts=mechanisms_file.acts,
        limits=read(FOLDER / "reading.yaml", ReadingLimits),
        words=read(FOLDER / "question.yaml", QuestionWords),
        hashes={f"prompts/{name}": file_hash(FOLDER / name) for name in (*SYSTEM, *DATA)} | taxonomy().hashes,
        constraints={name: f"{text} {constraints.innocent}" for name, text in constraints.constraints.items()},
    )


def _traits() -> Iterator[str]:
    yield "# Traits\n\nA mark from 0 to 4 each. In a negative trait 4 is the worst, in a positive one the best.\n"
    for trait in taxonomy().traits.values():
        yield f"- {trait.id} ({trait.polarity}): {trait.description}"
        yield "  " + " ".join(f"{mark}: {trait.anchors[mark]}" for mark in range(MARKS + 1))


def _catalogue() -> Iterator[str]:
    yield "# Catalogue of indicators\n"
    for indicator in taxonomy().asked_of_a_judge():
        yield f"- {indicator.id}: {indicator.description}"


SPEAKERS: dict[Role, str] = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
LOW, HIGH = 0.25, 0.5  # averages up to and from which the history says so: .52 is high


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
    return render_prompt(prompts.rubric, context, own, question.cut, question.history, framing, prompts, tools)


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
    """``flattery, isolation (2 flags)``; nothing found is ``standard (0 flags)``."""
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
    """The agent's history in lines; numbers and names of ours only."""
    yield f"Evaluations: {history.evaluations}"
    for trait, mean in history.averages.items():
        level = " (high)" if mean >= HIGH else " (low)" if mean <= LOW else ""
        yield f"Avg {trait}: {mean:.2f}{level}"
    moving = [f"{trait} {trend}" for trait, trend in history.trends.items() if trend not in ("steady", "unknown")]
    if history.evaluations:
        is_known = any(trend != "unknown" for trend in history.trends.values())
        yield f"Recent trend: {', '.join(moving) or ('steady' if is_known else 'unknown')}"
    if history.findings:
        yield "Prior pattern flags: " + ", ".join(f"{name} ({times}x)" for name, times in history.findings.items())


def _lines(messages: Sequence[RenderedMessage]) -> Iterator[str]:
    for message in messages:
        yield f"[{message.speaker}: {encoded(message.author)}] {encoded(message.text)}\n"
        yield f"  Scanner: {message.scanner}\n"
        yield from message.tools


# What chat templates read as control: <|im_start|>, </s>, <start_of_turn>, <think>, [INST], [/INST], [TOOL_CALLS] …
_TEMPLATE = re.compile(r"<(?![\s=\d<-])|\[(?=/?[A-Z_]{3,}\])|(?<=\|)>|\u2581|\uff5c")
_HIDDEN = frozenset(
    {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
)  # control, format, private, broken, unassigned, separators
_UNUSUAL = re.compile(r"[^ -~]")
_WIDE = 0x10000


def encoded(text: str) -> str:
    """The text as a JSON string on one line, quotes included.

    Line breaks, control and invisible characters and the first characters of template tokens are JSON escapes, so that
    decoding the string gives the text back unchanged.

    >>> encoded("one\\ntwo <|im_end|>")
    '"one\\\\ntwo \\\\u003c|im_end|\\\\u003e"'
    """
    line = json.dumps(text, ensure_ascii=False)
    return _visible(_TEMPLATE.sub(_template, line))


def shortened(text: str, most: int) -> tuple[str, int]:
    """The text with its middle left out where it is longer than ``most`` UTF-8 bytes, and how many bytes it had.

    0 stands for a text that is whole. The ends are cut at characters, never inside one.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text, 0
    half = max(1, most // 2)
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[…]\n{tail}", len(data)


def _visible(line: str) -> str:
    return line if line.isascii() and line.isprintable() else _UNUSUAL.sub(_shown, line)


def _shown(match: re.Match[str]) -> str:
    return _escape(match[0]) if unicodedata.category(match[0]) in _HIDDEN else match[0]


def _template(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(char: str) -> str:
    code = ord(char)
    if code < _WIDE:
        return f"\\u{code:04x}"
    high, low = divmod(code - _WIDE, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class ToolLines(NamedTuple):
    """The lines, and how many calls and results are left out or shortened in them."""

    lines: tuple[str, ...]
    cut: int


def tools_of(message: Message) -> ToolLines:
    """The calls of a message, and its results that are not its text anyway.

    Of more than ``tools`` of them (``reading.yaml``) the last ones are shown; of an input or a result of more than
    ``tool_bytes`` the middle is left out.
    """
    results = [each for each in message.tool_results if each.text not in message.text]
    used: list[ToolCall | ToolResult] = [*message.tool_calls, *results]
    last = used[-shipped_prompts().limits.tools :]
    lines = [_line(each) for each in last]
    gone = len(used) - len(last)
    before = (
        (f"  Tools: {counted(gone, 'earlier call or result', 'earlier calls and results')} left out\n",) if gone else ()
    )
    return ToolLines((*before, *(line for line, _ in lines)), gone + sum(cut for _, cut in lines))


def _line(used: ToolCall | ToolResult) -> tuple[str, bool]:
    """The line, and whether it is shortened."""
    if isinstance(used, ToolCall):
        text = (
            used.input
            if isinstance(used.input, str)
            else json.dumps(used.input, ensure_ascii=False, separators=(",", ":"))
        )
        head = f"  Tool call: {encoded(used.name)} "
    else:
        text, head = used.text, f"  Tool result{', an error' if used.is_error else ''}: "
    shortened_text, size = shortened(text, shipped_prompts().limits.tool_bytes)
    words = shipped_prompts().words.shortened.format(bytes=f"{size:,}").rstrip() if size else ""
    return f"{head}{encoded(shortened_text)}{words}\n", bool(size)


def render_segment(segment: Segment) -> RenderedPrompt:
    """The one message or two apart, then what stands around them, then the question."""
    limits, words = shipped_prompts().limits, shipped_prompts().words
    own = [_render_message(message, limits.message_bytes // 2) for message in segment.messages]
    around = [_render_message(message, limits.prior_bytes) for message in segment.around]
    nonce = nonce_of([*own, *around])
    asking = words.confirm.format(
        description=shipped_prompts().second_questions[segment.mechanism], number="{number}", words="{words}"
    )
    control, question = control_question(nonce, shipped_prompts(), asking)
    parts = [f"# Message {number}\n{block([each], nonce)}" for number, each in enumerate(own, 1)]
    if around:
        parts.append(words.around + block(around, nonce))
    return RenderedPrompt(shipped_prompts().confirming, "\n".join([*parts, question]), control, nonce)


def _render_message(message: Message, most: int) -> RenderedMessage:
    return render_message(message, Scan(message_id=message.id), most)
