"""The free signals of a message and of a thread."""

from __future__ import annotations

from typing import Literal

from undersong.models.message import NEGATIVE_TRAITS, Record, SignalKind

COUNTED = NEGATIVE_TRAITS | {"hard_constraint"}  # what flags a message; positive traits and structure are hits only


class Hit(Record, frozen=True, kw_only=True):
    """A phrase found in a message: ``text[start:end]`` is the verbatim span (Unicode code points).

    ``trait`` is one of the twelve, or ``hard_constraint`` with ``constraint`` set (HC-01 … HC-07), or
    ``structure`` for apology, correction, empathy and claim tokens. ``label`` names the kind.
    """

    trait: str
    label: str
    phrase: str
    start: int
    end: int
    indicator: str | None = None
    constraint: str | None = None


class Loop(Record, frozen=True, kw_only=True):
    """Words that come again. ``scope`` is the kind, ``count`` how often:

    - ``message``, ``turns``: an n-gram 3 or more times within a message, or in 3 or more turns of an agent;
    - ``reply``: a reply alike one of the agent's last turns, ``count`` of them in a chain;
    - ``held``: such a reply that declines a request, and so is steady and not stuck;
    - ``echo``: a reply alike the message just before it, of another speaker (2);
    - ``alternation``: A-B-A-B, of one agent or of two who take turns; ``count`` pairs.

    ``ngram`` holds the words, of a reply the first ones; ``message_ids`` the messages, the latest ones.
    """

    ngram: str
    count: int
    scope: Literal["message", "turns", "reply", "held", "echo", "alternation"]
    message_ids: tuple[str, ...] = ()


WHOLE_REPLIES = ("reply", "alternation")  # scopes of loops in which a whole reply comes again


class Deference(Record, frozen=True, kw_only=True):
    """Apology and correction tokens of the agent's turns so far; ratio = apologies / max(corrections, 1).

    ``wide_ratio`` is a wider measure, told apart: (apologies + agreements) / max(corrections + disagreements, 1).
    """

    apologies: int
    corrections: int
    ratio: float
    high: bool
    agreements: int = 0
    disagreements: int = 0
    wide_ratio: float = 0.0


class CodeBlock(Record, frozen=True, kw_only=True):
    """Code in a message: ``sha256`` over the normalised code, ``start``/``end`` in the text where it is there.

    ``substance`` is a hash of the same code without comments and idle white space, ``replaces`` that of the code which
    an edit or a patch takes out. ``call`` is the id of the tool call that writes it.
    """

    sha256: str
    lang: str | None = None
    kind: Literal["fence", "edit", "write", "patch"] = "fence"
    path: str | None = None
    lines: int = 0
    start: int | None = None
    end: int | None = None
    substance: str | None = None
    replaces: str | None = None
    call: str | None = None


class Scan(Record, frozen=True, kw_only=True):
    """The free signals of one message.

    ``flags`` counts hits of the negative traits and of ``hard_constraint``; ``total`` is their sum, ``density``
    is total per word. Hits of positive traits and structure are in ``hits`` only. ``sentiment_score`` is empathic
    phrases per sentence, 0-1. ``code_change_delta`` is 0 for code identical to the agent's earlier version, 1 for
    new code, None where there is nothing to compare. ``triage`` is the probability of any negative trait ≥ .5,
    None without a triage model.
    """

    message_id: str
    hits: tuple[Hit, ...] = ()
    flags: dict[str, int] = {}
    total: int = 0
    density: float = 0.0
    words: int = 0
    hard_constraints: tuple[str, ...] = ()
    loops: tuple[Loop, ...] = ()
    deference: Deference | None = None
    code_blocks: tuple[CodeBlock, ...] = ()
    sentiment_score: float = 0.0
    code_change_delta: float | None = None
    latency_drop: bool | None = None
    triage: float | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct labels of what flags this message, in order of appearance."""
        return tuple(dict.fromkeys([hit.label for hit in self.hits if hit.trait in COUNTED]))


class ThreadSignal(Record, frozen=True, kw_only=True):
    """A free signal that only a thread shows, with the messages that carry it."""

    kind: SignalKind
    message_ids: tuple[str, ...]
    agents: tuple[str, ...] = ()
    trait: str | None = None


class AgentFlags(Record, frozen=True, kw_only=True):
    """What accumulated for one agent in a thread."""

    messages: int
    flagged: int
    total: int
    flags: dict[str, int] = {}


class Telemetry(Record, frozen=True, kw_only=True):
    """The pace, length and hour of a session; None means unknown, never absent.

    ``tokens_per_minute`` is of the user, ``hours`` from first to last message, ``longest_stretch_hours`` without a
    break.
    """

    tokens_per_minute: float | None = None
    tokens_estimated: bool = True
    hours: float | None = None
    longest_stretch_hours: float | None = None
    breaks: int | None = None
    late_night: bool | None = None
    code_share: float = 0.0


class ThreadScan(Record, frozen=True, kw_only=True):
    """The free signals of one conversation; ``session_context_vector`` names what is known of its telemetry."""

    conversation: str
    signals: tuple[ThreadSignal, ...] = ()
    agents: dict[str, AgentFlags] = {}
    session_context_vector: tuple[str, ...] = ()
    telemetry: Telemetry = Telemetry()
    upgrades: dict[str, int] = {}
