"""The protocol of a judge, and opening one by the name that ``--judge`` gives: ours, or one of an installed package."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import RunLimits
from undersong.models import Confirmed, Evaluation, Message, Record, Route, Scan, SequenceReading

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from undersong.ml.trait_heads import Heads

T = TypeVar("T")
R = TypeVar("R")
# name of --judge → module with a function ``open_judge(argument) -> Judge``; the argument is what follows the colon
JUDGES: dict[str, str] = {
    "offline": "undersong.judges.offline",
}
# the same, with a function ``open_judge(argument, limits) -> Judge``: the limits say what it may spend
PAID: dict[str, str] = {
    "anthropic": "undersong.judges.llm.providers.anthropic",
    "openai": "undersong.judges.llm.providers.openai",
    "replay": "undersong.judges.llm.providers.replay",
    "tiers": "undersong.judges.llm.judge",  # focused=X,deep=Y,deep_with_context=Z
    **dict.fromkeys(
        ("azure", "bedrock", "command", "file", "gemini", "llamacpp", "lmstudio", "ollama", "openrouter", "vllm"),
        "undersong.judges.llm.judge",  # the presets of rules/providers.yaml beside the two vendors
    ),
}
PLUGINS = "undersong.judges"  # entry points of other packages: a judge's name → its ``open_judge``, of either form


class EvaluationHistory(Record, frozen=True, kw_only=True):
    """What was read of an agent before a message: number of evaluations, mean per trait, trend, earlier findings.

    ``trends`` compares the mean of the last five with the five before, per trait: rising, falling,
    steady, or unknown below ten. ``findings``
    counts by pattern.
    """

    evaluations: int = 0
    averages: dict[str, float] = {}
    trends: dict[str, str] = {}
    findings: dict[str, int] = {}


class Question(Record, frozen=True, kw_only=True):
    """One message to score, with what the tier allows a judge to see: ``prior`` messages in order, oldest first.

    ``prior_scans`` are aligned with them; ``cut`` is how many earlier messages of the thread were left out; ``history``
    is None where the tier does not ask for it. ``tools`` are tools' answers in the same turn that are not in ``prior``.
    """

    message: Message
    scan: Scan
    route: Route
    prior: tuple[Message, ...] = ()
    prior_scans: tuple[Scan, ...] = ()
    cut: int = 0
    history: EvaluationHistory | None = None
    tools: tuple[Message, ...] = ()

    @property
    def context_hash(self) -> str:
        """SHA-256 over all that a question shows beside the text of its message."""
        prior = zip(self.prior, self.prior_scans, strict=True)
        shown = [[_text_hash(message), *_heading(message, scan)] for message, scan in prior]
        own = _heading(self.message, self.scan)
        parts: list[object] = [self.route.depth == "thorough", self.route.width, own, shown, self.cut, self.history]
        parts += [[_text_hash(message), *used_tools(message)] for message in self.tools]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


class Segment(Record, frozen=True, kw_only=True):
    """One message or two, in order, and the mechanism that they may show.

    ``around`` are other messages of the talk, shown as context; ``at`` is the id of the message at which the mechanism
    would stand, "" for the last one.
    """

    mechanism: str
    messages: tuple[Message, ...]
    around: tuple[Message, ...] = ()
    at: str = ""

    @property
    def place(self) -> str:
        """The id of the message at which the mechanism would appear."""
        return self.at or self.messages[-1].id


class PatternShape(Record, frozen=True, kw_only=True):
    """A pattern in prose, for a reader of whole sequences: ``stages`` pairs each stage's name with what shows it.

    ``innocent`` lists innocent look-alikes.
    """

    id: str
    text: str
    stages: tuple[tuple[str, str], ...]
    innocent: tuple[str, ...] = ()


class SequenceWindow(Record, frozen=True, kw_only=True):
    """Messages in order, of which those of ``agent`` are to be read as a sequence; the others are what they answer.

    ``target`` and ``conversation`` are None where the window is not limited to one. Where the first ``compared``
    messages are of a conversation in which the agent is watched, as far as anybody says, the others are of one in which
    it is not: the first stage of a shape is looked for in the former alone, every other stage in the latter.
    """

    agent: str
    messages: tuple[Message, ...]
    target: str | None = None
    conversation: str | None = None
    compared: int = 0

    def of_stage(self, number: int) -> tuple[Message, ...]:
        """The messages in which a stage is looked for."""
        if not self.compared:
            return self.messages
        return self.messages[: self.compared] if number == 0 else self.messages[self.compared :]


class Judge(Protocol):
    """Scores messages; one that cannot score a message returns an Evaluation whose state says why.

    A subclass inherits what has a default here: it confirms nothing, and says nothing of a model behind it.
    """

    name: str
    """As in ``--judge``, written into every row."""
    hash: str
    """SHA-256 over model and prompt: a stored answer is reused only under the same hash."""
    reads_everything: bool
    """True where reading is free, so that the router need not save."""
    gives: frozenset[str]
    """What it fills: any of ``traits``, ``indicators``, ``mechanisms`` and names of signals."""
    hashes: dict[str, str]
    """Artefact or prompt name → SHA-256, for the manifest."""
    calibrated: bool
    """Whether its scores were compared with labels of this kind of text."""
    confirms: bool = False
    """Whether ``confirm`` asks it a second question about flagged places."""
    reads_sequences: bool = False
    """Whether ``read_sequences`` reads whole sequences for the shapes of the rules."""
    sequence_hashes: dict[str, str] = {}
    """Prompt name → SHA-256 of what its questions about sequences are made of, for the manifest."""
    heads: Heads | None = None
    """The linear model behind its trait scores, for attribution."""
    own_folder: str = ""
    """The name of the folder of a user's own model."""

    @property
    def learnt_from(self) -> frozenset[str] | None:
        """Hashes of the messages that it was trained on, None where nobody knows; raises JudgeError."""
        return None

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order; raises JudgeError only when nothing can be asked at all.

        The ``context_hash`` of an Evaluation is the question's, or "" where the judge reads the message alone.
        """
        ...

    def confirm(self, segments: Sequence[Segment]) -> list[Confirmed]:
        """One answer per segment, in order, to a second question: do these words show this mechanism?"""
        return [self.not_asked(segment, "the judge answers no second question") for segment in segments]

    def read_sequences(
        self,
        windows: Sequence[SequenceWindow],
        shapes: Sequence[PatternShape],  # noqa: ARG002 - part of the protocol
    ) -> list[SequenceReading]:
        """One reading per window, in order: which of the shapes its agent's messages have, if any."""
        return [self.sequence_not_read(each, "the judge reads no sequences") for each in windows]

    def sequence_not_read(self, window: SequenceWindow, why: str) -> SequenceReading:
        """The reading of a window that the judge was not asked about."""
        return SequenceReading(
            id="",
            agent=window.agent,
            target=window.target,
            conversation=window.conversation,
            message_ids=tuple(message.id for message in window.messages),
            message_conversations=tuple(message.conversation for message in window.messages),
            shapes=(),
            judge=self.name,
            prompt_hash="",
            state="unread",
            reason=why,
            outcome="unread",
        )

    def not_asked(self, segment: Segment, why: str) -> Confirmed:
        """The answer about a segment that the judge was not asked about."""
        return Confirmed(
            mechanism=segment.mechanism,
            at=segment.place,
            message_ids=tuple(message.id for message in segment.messages),
            state="unread",
            judge=self.name,
            judge_hash=self.hash,
            reason=why,
        )


def panel_names(spec: str) -> tuple[str, ...]:
    """The judges that ``--judge`` names: several where a comma stands before the name of a judge, else one.

    >>> panel_names("anthropic:LARGE,openai:LARGE")
    ('anthropic:LARGE', 'openai:LARGE')
    >>> panel_names("focused=anthropic:SMALL,deep=anthropic:LARGE")
    ('focused=anthropic:SMALL,deep=anthropic:LARGE',)
    """
    if "," not in spec or "=" in spec.partition(":")[0]:
        return (spec,)
    names = "|".join(map(re.escape, (*JUDGES, *PAID, *plugins())))
    return tuple(re.split(rf",(?=(?:{names})(?::|,|$))", spec))


def asks_models(spec: str) -> bool:
    """Whether ``--judge`` names models that we ask, one, two or one per tier, now or in a recorded run."""
    if len(names := panel_names(spec)) > 1:
        return any(map(asks_models, names))
    name = spec.partition(":")[0]
    return "=" in name or name in PAID


def is_paid(spec: str) -> bool:
    """Whether the judge that ``--judge`` names is opened with the limits of a run."""
    if len(names := panel_names(spec)) > 1:
        return any(map(is_paid, names))
    name = spec.partition(":")[0]
    if asks_models(spec):
        return True
    return name not in JUDGES and name in (added := plugins()) and _takes_limits(added[name].load())


def plugins() -> dict[str, EntryPoint]:
    """Name → entry point of the judges that installed packages add; our own names go first."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=PLUGINS) if each.name not in {*JUDGES, *PAID}}


class JudgeAbortedError(JudgeError):
    """The judge failed as a whole on the way: ``answers`` are those given before, None for the rest."""

    def __init__(self, error: JudgeError, answers: Sequence[Any]) -> None:
        super().__init__(error.what, where=error.where, remedy=error.remedy)
        self.answers = tuple(answers)


def asked(
    judge: Judge, items: Sequence[T], ask: Callable[[Judge, Sequence[T]], Sequence[R | None]]
) -> tuple[Sequence[R | None], JudgeError | None]:
    """One answer per item, None for those the judge did not reach, and why it did not."""
    if not items:
        return [], None
    try:
        return ask(judge, items), None
    except JudgeAbortedError as error:
        return error.answers, error
    except JudgeError as error:
        return [None] * len(items), error


def open_judge(spec: str, limits: RunLimits | None = None) -> Judge:
    """The judge named ``NAME`` or ``NAME:ARGUMENT``, one per tier, or a panel of two; raises UsageError for others.

    ``limits`` say what a judge may spend and where its answers are kept; the offline judge needs none.
    """
    if len(names := panel_names(spec)) > 1:
        panel: Judge = import_module("undersong.judges.panel").open_panel(names, limits or RunLimits())
        return panel
    name, _, argument = spec.partition(":")
    if "=" in name or PAID.get(name) == PAID["tiers"]:
        name, argument = "tiers", spec
    opener = _opener(name)
    judge: Judge = opener(argument, limits or RunLimits()) if _takes_limits(opener) else opener(argument)
    return judge


def _opener(name: str) -> Callable[..., Judge]:
    """The ``open_judge`` of a name: of our own tables, else of an installed package."""
    if (module := JUDGES.get(name) or PAID.get(name)) is not None:
        own: Callable[..., Judge] = import_module(module).open_judge
        return own
    added = plugins()
    if name not in added:
        raise UsageError(f"unknown judge '{name}'", remedy=did_you_mean(name, [*JUDGES, *PAID, *sorted(added)]))
    plugin: Callable[..., Judge] = added[name].load()
    return plugin


def _takes_limits(opener: Callable[..., Judge]) -> bool:
    """Whether a judge may spend something: then its ``open_judge`` has a second parameter."""
    return len(signature(opener).parameters) > 1


def _text_hash(message: Message) -> str:
    return hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()


def _heading(message: Message, scan: Scan) -> list[object]:
    """What a question says of a message beside its text."""
    author = message.author.encode("utf-8", "surrogatepass").hex()  # hex: a name may hold half a character
    return [author, message.role, scan.labels, scan.total, *used_tools(message)]


def used_tools(message: Message) -> list[str]:
    """A hash of a message's calls and results; nothing where it has none."""
    if not message.tool_calls and not message.tool_results:
        return []
    used = msgspec.json.encode([repr(message.tool_calls), repr(message.tool_results)])
    return [hashlib.sha256(used).hexdigest()]
