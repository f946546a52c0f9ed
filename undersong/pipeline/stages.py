"""The stages of an audit over a whole corpus: ingest and scan, route, evaluate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from undersong.core.batches import batches
from undersong.core.text import counted
from undersong.errors import JudgeError
from undersong.formats.normalize import normalize_conversation, normalize_messages
from undersong.formats.objects import Inputs, read_inputs
from undersong.judges.measurement import ScoreMap, mapped_row
from undersong.judges.protocol import Judge
from undersong.models import Conversation, InputFile, Message, Problem, Row, SessionVerdict
from undersong.models.verdict import Profile
from undersong.pipeline.evaluate import FailureTally, HistoryLookup, RoutedThread, evaluate, not_scored
from undersong.pipeline.options import Options, Progress, chosen, matched_none
from undersong.pipeline.partwise import CorpusRouting, ScannedPart, reads_all, routed_thread, routing_of, rows_of
from undersong.routing.budget import BudgetCutoff, Census, DemandHistogram
from undersong.routing.route import load_policy
from undersong.rows.binary import with_event_times
from undersong.scan import SignalBook, scan_conversations
from undersong.stores.erasure import Forgotten
from undersong.stores.protocol import Store

BATCH = 1024  # messages that are asked and committed together
SCANNED = 1 << 17  # characters that are scanned together


class AuditCorpus(msgspec.Struct, kw_only=True):
    """What ingest and scan left in the store: the order of the conversations, what was read and what was not.

    ``demand`` counts what asks to be read, ``routing`` is what follows from it. ``passed_over`` counts the
    conversations that were not chosen. ``lost``: how many messages of a conversation left the store, since the inputs
    do not have them.
    """

    conversations: list[str] = []
    inputs: list[InputFile] = []
    problems: list[Problem] = []
    messages: int = 0
    passed_over: int = 0
    lost: dict[str, int] = {}
    demand: DemandHistogram = msgspec.field(default_factory=DemandHistogram)
    routing: CorpusRouting = CorpusRouting()

    @property
    def cut(self) -> BudgetCutoff:
        """Where the budget ends."""
        return self.routing.cut

    @property
    def rate(self) -> float:
        """The rate of the audit sample."""
        return self.routing.rate


class AuditState(msgspec.Struct, kw_only=True):
    """The results of an audit so far, without the texts."""

    rows: list[Row] = []
    sessions: list[SessionVerdict] = []
    upgrades: dict[str, int] = {}
    census: Census = msgspec.field(default_factory=Census)
    failure: JudgeError | None = None
    histories: HistoryLookup | None = None
    maps: dict[str, ScoreMap] = {}
    profile: Profile | None = None
    states: Counter[str] = msgspec.field(default_factory=Counter)
    tally: FailureTally = msgspec.field(default_factory=FailureTally)

    def count(self, row: Row) -> None:
        """Count a row by its state."""
        self.states[row.state] += 1
        for answer in (row.reading.panel if row.reading is not None else ()) or (row,):
            self.tally.add(answer.state, answer.reason)


def ingest_and_scan(
    inputs: Inputs, store: Store, book: SignalBook, options: Options, progress: Progress
) -> AuditCorpus:
    """Ingest and scan: both go into the store, and what asks to be read is counted.

    Raises UsageError where ``only`` and ``since`` leave out every conversation.
    """
    policy = options.policy or load_policy()
    corpus, part = AuditCorpus(), ScannedPart(options)
    forgotten = Forgotten(store.tombstones())
    items = _conversations(
        read_inputs(
            inputs,
            source_format=options.source_format,
            dates=options.dates,
            fields=options.fields,
            progress=partial(progress, "read"),
        ),
        corpus,
        options,
        forgotten,
        store,
    )
    for batch in batches(items, SCANNED, lambda item: sum(len(message.text) for message in item.messages)):
        scanned = scan_conversations(batch, book)
        store.put_conversations((item, *each) for item, each in zip(batch, scanned, strict=True))
        for item, (scans, thread) in zip(batch, scanned, strict=True):
            part.add(item, scans, thread, policy, options.seed)
            corpus.conversations.append(item.id)
            corpus.messages += len(item.messages)
        progress("scan", corpus.messages, max(corpus.messages, sum(file.messages for file in corpus.inputs)))
    if corpus.passed_over and not corpus.conversations:
        raise matched_none(options, corpus.passed_over)
    corpus.problems += [*part.notes(), *_replaced(corpus)]
    corpus.demand, corpus.routing = part.demand, routing_of(part, options)
    return corpus


def _without_thinking(conversation: Conversation) -> Conversation:
    messages = tuple(msgspec.structs.replace(message, thinking="") for message in conversation.messages)
    return msgspec.structs.replace(conversation, messages=messages)


def _conversations(
    items: Iterable[Conversation | Problem | InputFile],
    corpus: AuditCorpus,
    options: Options,
    forgotten: Forgotten,
    store: Store,
) -> Iterator[Conversation]:
    """The chosen conversations; what else was read goes to the corpus."""
    for item in items:
        if isinstance(item, Problem):
            corpus.problems.append(item)
        elif isinstance(item, InputFile):
            corpus.inputs.append(item)
        elif forgotten.conversation(item.id):
            corpus.problems.append(_left_out(item))
        elif chosen(item, options):
            redacted = forgotten.without(item if options.thinking else _without_thinking(item))
            corpus.problems += _emptied(item, redacted)
            if options.add:
                redacted = added_to_stored(redacted, store)
            elif lost := messages_lost(redacted, store):
                corpus.lost[item.id] = lost
            yield redacted
        else:
            corpus.passed_over += 1


def routed_threads(corpus: AuditCorpus, store: Store, options: Options) -> Iterator[RoutedThread]:
    """Each conversation of the corpus with its scans and routes, in the order of the input."""
    policy = options.policy or load_policy()
    for name in corpus.conversations:
        yield routed_thread(*store.conversation(name), policy, corpus.routing, options.seed)


def read_threads(
    corpus: AuditCorpus, store: Store, judge: Judge, options: Options, progress: Progress, run: AuditState
) -> Iterator[tuple[RoutedThread, tuple[Row, ...]]]:
    """Evaluate the routed messages batch by batch; yields each thread with its rows.

    When the judge fails as a whole, the rest is unread with that reason and ``run.failure`` says so.
    """
    done, read_all = 0, reads_all(judge, options)
    for threads in batches(routed_threads(corpus, store, options), BATCH, lambda thread: len(thread.routes)):
        store.put_routes((thread.conversation.id, thread.routes) for thread in threads)
        if options.read == "sequences":
            answers = not_scored(threads, judge, "not scored: only whole sequences are read")
        else:
            answers = evaluate(threads, judge, store, read_all=read_all, histories=run.histories, failed=run.failure)
        run.failure = answers.failure
        rows = [rows_of(*each) for each in zip(threads, answers.evaluations, strict=True)]
        done += sum(map(len, rows))
        yield from zip(threads, stored_rows(rows, store, run), strict=True)
        progress("evaluate", done, corpus.messages)


def stored_rows(rows: Sequence[Sequence[Row]], store: Store, run: AuditState) -> Iterator[tuple[Row, ...]]:
    """The rows of some threads, counted, with scores by the run's maps; the store has the judge's own by then."""
    store.append(row for each in rows for row in with_event_times(each))
    for row in chain.from_iterable(rows):
        run.count(row)
    return (tuple(mapped_row(row, run.maps) for row in each) for each in rows)


def _left_out(conversation: Conversation) -> Problem:
    what = f"conversation {conversation.id} is left out: this store was told to forget it"
    return Problem(what=what, where=str(conversation.source_ref or ""), remedy="use another --store", kind="note")


def _replaced(corpus: AuditCorpus) -> Iterator[Problem]:
    """That messages left the store with a shorter version of their conversation, as a day of a longer talk is one."""
    if corpus.lost:
        messages = counted(sum(corpus.lost.values()), "message")
        where = counted(len(corpus.lost), "conversation")
        what = f"the store had {messages} of {where} that are not in the input, and has them no more"
        remedy = "to add to what is stored, audit what is complete, then each new part with --add"
        yield Problem(what=what, where=min(corpus.lost), remedy=remedy, kind="note")


def _emptied(conversation: Conversation, redacted: Conversation) -> Iterator[Problem]:
    """That messages of a forgotten agent have no text here: they are unread, not harmless."""
    count = sum(one.agent != other.agent for one, other in zip(conversation.messages, redacted.messages, strict=True))
    if count:
        messages = "1 message" if count == 1 else f"{count} messages"
        what = f"conversation {redacted.id}: {messages} not read: this store was told to forget who wrote them"
        yield Problem(what=what, where=str(redacted.source_ref or ""), remedy="use another --store", kind="note")


def messages_lost(conversation: Conversation, store: Store) -> int:
    """How many messages of a conversation leave a store when this version of it takes the place of the stored one."""
    stored = store.length(conversation.id)
    return (
        stored - len(store.messages(conversation.id, (message.id for message in conversation.messages)))
        if stored
        else 0
    )


def added_to_stored(conversation: Conversation, store: Store) -> Conversation:
    """The conversation behind the messages that a store has of it: by time where all have one, else at their end.

    A message with the id of a stored one is its newer version. Where the id was only made from its place, and text,
    author or time are others, it is another message and gets an id of its own.
    """
    if not store.length(conversation.id):
        return conversation
    stored = {
        message.id: message for message in _as_read(store.conversation(conversation.id)[0].messages, conversation.id)
    }
    new = {message.id: message for message in _renamed(_as_read(conversation.messages, conversation.id), stored)}
    together = [*(message for name, message in stored.items() if name not in new), *new.values()]
    if all(message.time for message in together):
        together.sort(key=lambda message: message.time)  # type: ignore[arg-type,return-value]
    placed = tuple(msgspec.structs.replace(message, position=place) for place, message in enumerate(together))
    return normalize_conversation([msgspec.structs.replace(conversation, messages=placed)])[0]


def _as_read(messages: Sequence[Message], conversation: str) -> list[Message]:
    """The messages without the targets that were worked out from who speaks, since more speak in all of them."""
    plain = [msgspec.structs.replace(message, target=None) for message in messages]
    worked_out = normalize_messages(plain, conversation)
    return [
        message if message.target != own.target else unnamed
        for message, unnamed, own in zip(messages, plain, worked_out, strict=True)
    ]


def _renamed(messages: Sequence[Message], stored: dict[str, Message]) -> list[Message]:
    """The messages, those whose id was made from their place under one that no other message has."""
    renamed = []
    for message in messages:
        name = message.id
        while name.startswith(f"{message.conversation}:") and name in stored and _differ(stored[name], message):
            name = f"{name}~2"
        renamed.append(message if name == message.id else msgspec.structs.replace(message, id=name))
    return renamed


def _differ(one: Message, other: Message) -> bool:
    return _content(one) != _content(other)


def _content(message: Message) -> tuple[Any, ...]:
    return message.author, message.text, message.time
