"""The state of one growing conversation: messages in any order become scans, routes, questions and rows; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from undersong.errors import JudgeError
from undersong.formats.normalize import common_offset, in_order_of_time, normalize_messages
from undersong.judges.context import EarlierMessages
from undersong.judges.protocol import Judge, Question
from undersong.judges.stance import with_stance
from undersong.models import Conversation, Evaluation, Lead, Message, Route, Row, Scan, ThreadScan, Tier
from undersong.patterns.request_leads import word_leads
from undersong.pipeline.evaluate import HistoryLookup, RoutedThread, question_of, still_valid, unread
from undersong.routing.budget import BudgetCutoff, for_recall
from undersong.routing.route import NONE_ELSEWHERE, Policy, Proposal, decide_routes, load_policy, propose
from undersong.rows.binary import with_event_times
from undersong.rows.corpus_scales import is_foreign, with_row_scale
from undersong.rows.jsonl import rounded
from undersong.scan import SignalBook, scan_conversation
from undersong.scan.incremental import IncrementalScan
from undersong.stores.protocol import ConversationUpdate, StoredConversation
from undersong.verdict import word_moments

NOT_YET = "the judge did not come to it; it is asked with the next message of the conversation"


class ConversationState:
    """A conversation so far, with what the batch stages would give for the same messages.

    In order: ``add`` messages, ``scan``, ``route``, ``add_answer`` for the ``questions``, ``make_rows``. What is new
    since the last ``mark_saved`` is in ``changed`` and ``detached`` (another text or author than before).
    """

    def __init__(self, head: Conversation, book: SignalBook, routing: RoutingConfig) -> None:
        self.conversation = msgspec.structs.replace(head, messages=())
        self.book, self.routing = book, routing
        self.messages_by_id: dict[str, Message] = {}
        self.scans: tuple[Scan, ...] = ()
        self.thread = ThreadScan(conversation=head.id)
        self.routes: tuple[Route, ...] = ()
        self.also: Mapping[int, str] = NONE_ELSEWHERE
        self.answers: dict[str, Evaluation] = {}
        self.failures: dict[str, JudgeError] = {}
        self.changed: set[str] = set()
        self.detached: set[str] = set()
        self.former_agents: set[str] = set()  # agents to whom a message belonged before
        self.late: tuple[str, ...] = ()  # messages that were there and are read otherwise since
        self.has_new_head = False
        self.is_due = False  # something was put that was not looked at, or the judge did not come to it
        self.rows: dict[str, Row] = {}
        self._new_ids: set[str] = set()
        self._growing: IncrementalScan | None = None
        self._zone = head.timezone
        self._draft: Proposal | None = None
        self._asked: list[tuple[Message, Scan, Tier, Tier, list[str], int]] = []  # what the routes were decided from
        self._open: set[str] = set()  # what may have to be asked
        self._earlier = EarlierMessages(())
        self._stale: set[str] = set()  # whose rows are to be made again
        self._plain: dict[str, Row] = {}  # rows before it is known whether their scores are levels
        self._foreign = False
        self._dated: dict[str, Row] = {}
        self._stored: dict[str, Row] = {}  # as a store has them, without texts
        self.leads: dict[str, Lead] = {}  # by id, as they were told
        self.new_leads: dict[str, Lead] = {}  # the same by now, as the store has them

    @classmethod
    def restored(
        cls,
        stored: StoredConversation,
        answers: dict[str, Evaluation],
        rows: Iterable[Row],
        book: SignalBook,
        routing: RoutingConfig,
    ) -> ConversationState:
        """A conversation as a store has it; all of it is looked at once more, with the answers that are there."""
        state = cls(stored.conversation, book, routing)
        messages = stored.conversation.messages
        unnamed = [msgspec.structs.replace(message, target=None) for message in messages]
        guesses = normalize_messages(unnamed, state.conversation.id)
        for message, plain, guess in zip(messages, unnamed, guesses, strict=True):
            named = guess.target != message.target if stored.named is None else message.id in stored.named
            state.messages_by_id[message.id] = message if named else plain
        state.answers = dict(answers)
        state._stored = {row.id: row for row in rows}
        state.conversation, state.scans, state.routes = stored.conversation, stored.scans, stored.routes
        state._growing = IncrementalScan(stored.conversation, stored.scans, book)
        state.thread = state._growing.thread(stored.conversation)
        state._all_again()
        state.leads = state.leads_by_now()
        state.is_due = not state.routes or any(
            message.id not in answers and state._is_read(place) for place, message in enumerate(messages)
        )
        return state

    @property
    def agents(self) -> set[str]:
        """Who speaks in it."""
        return {message.agent for message in self.conversation.messages}

    def placed(self, messages: Sequence[Message]) -> list[Message]:
        """The messages at their places: at the end where they have none, among those of other files by time.

        Each file counts from 0. Where a message has the place of another one, all of them are ordered by time, those of
        one moment, or all where nothing has a time, as they came.
        """
        by_id, last = self.messages_by_id, max((each.position for each in self.messages_by_id.values()), default=-1)
        several = len({_file(each) for each in (*by_id.values(), *messages)} - {""}) > 1
        result, places = list[Message](), {name: each.position for name, each in by_id.items()}
        for message in messages:
            position = message.position
            if position < 0 or (several and message.id in by_id and _file(message)):
                last, position = (last, places[message.id]) if message.id in places else (last + 1, last + 1)
            places[message.id] = position
            result.append(
                message if position == message.position else msgspec.structs.replace(message, position=position)
            )
        names = {each.id for each in result if _file(each)}
        untouched = {each.position for name, each in by_id.items() if name not in names}
        return self._merged(result) if any(places[name] in untouched for name in names) else result

    def _merged(self, messages: list[Message]) -> list[Message]:
        """These and those that are there, ordered and counted anew."""
        newer = {each.id: each for each in messages}
        there = sorted(self.messages_by_id.values(), key=lambda message: (message.position, message.id))
        every = [newer.get(each.id, each) for each in there]
        every += [each for name, each in newer.items() if name not in self.messages_by_id]
        places = {message.id: place for place, message in enumerate(in_order_of_time(every))}
        moved = {each.id: msgspec.structs.replace(each, position=places[each.id]) for each in there}
        self.messages_by_id |= {name: each for name, each in moved.items() if name not in newer}
        self.is_due = True
        return [msgspec.structs.replace(each, position=places[each.id]) for each in messages]

    def add(self, message: Message) -> bool:
        """Take a message, or a newer version of one; whether anything is new."""
        earlier = self.messages_by_id.get(message.id)
        if earlier is not None and (earlier == message or _as_stored(earlier) == _as_stored(message)):
            return False
        self.messages_by_id[message.id] = message
        self._new_ids.add(message.id)
        self.is_due = True
        return True

    def begin(self, head: Conversation) -> None:
        """Take the facts of the conversation beside its messages."""
        now = msgspec.structs.replace(head, messages=self.conversation.messages)
        zone = head.timezone or self.conversation.timezone
        if now != self.conversation:
            self.conversation, self._zone = msgspec.structs.replace(now, timezone=zone), zone
            self.is_due = self.has_new_head = True

    @property
    def places(self) -> dict[str, int]:
        """Message id → its place."""
        return {message.id: place for place, message in enumerate(self.conversation.messages)}

    def scan(self) -> None:
        """Order, address and scan what was put."""
        ordered = sorted(self.messages_by_id.values(), key=lambda message: (message.position, message.id))
        messages = normalize_messages(ordered, self.conversation.id)
        before = self.conversation.messages
        zone = self._zone or common_offset(ordered)
        self.conversation = msgspec.structs.replace(self.conversation, messages=messages, timezone=zone)
        self._draft = None
        if messages[: len(before)] == before:
            self._grow(len(before))
            return
        by_id = {message.id: message for message in before}
        for message in messages:
            old = by_id.get(message.id)
            if old is not None and (old.agent, old.text) != (message.agent, message.text):
                self.detached.add(message.id)
                self.former_agents.add(old.agent)
                self.answers.pop(message.id, None)
        self.changed |= {message.id for message in messages if by_id.get(message.id) != message}
        self._growing = None
        self._look_at_all()

    def _grow(self, first_new: int) -> None:
        """The messages from ``first_new`` on are new, and nothing else is."""
        messages = self.conversation.messages
        if self._growing is None:
            head = msgspec.structs.replace(self.conversation, messages=messages[:first_new])
            self._growing = IncrementalScan(head, self.scans, self.book)
        for place in range(first_new, len(messages)):
            self._growing.append(msgspec.structs.replace(self.conversation, messages=messages[: place + 1]))
            self._new(messages[place].id)
        self.scans = tuple(self._growing.scans)
        self.thread = self._growing.thread(self.conversation)

    def _look_at_all(self) -> None:
        before = {scan.message_id: scan for scan in self.scans}
        self.scans, self.thread = scan_conversation(self.conversation, self.book)
        self.changed |= {scan.message_id for scan in self.scans if before.get(scan.message_id) != scan}
        self._all_again()

    def _all_again(self) -> None:
        self._open |= self.messages_by_id.keys()
        self._stale |= self.messages_by_id.keys()

    def _new(self, message_id: str) -> None:
        self.changed.add(message_id)
        self._open.add(message_id)
        self._stale.add(message_id)

    def route(self) -> None:
        """Decide how each message is read, where it is asked otherwise than before; what changes by it is new."""
        messages, way = self.conversation.messages, self.routing
        drafted = self.draft
        if self.also:
            drafted = propose(self.conversation, self.scans, self.thread, way.policy, self.also)
        proposals = drafted.before, drafted.tiers, drafted.reasons, drafted.ranks
        asked = list(zip(messages, self.scans, *proposals, strict=True))
        count = len(self._asked)
        places = [place for place, each in enumerate(asked) if place >= count or each != self._asked[place]]
        decided = decide_routes(messages, self.scans, drafted, places, rate=way.rate, seed=way.seed, cut=way.cut)
        before, routes = {each.message_id: each for each in self.routes}, [*self.routes, *decided][: len(asked)]
        for place, decision in zip(places, decided, strict=True):
            routes[place] = decision
            if before.get(decision.message_id) != decision:
                self._new(decision.message_id)
        self.routes, self._asked = tuple(routes), asked

    def leads_by_now(self) -> dict[str, Lead]:
        """The leads from exact words in its messages so far, by id."""
        moments = word_moments(self.conversation, self.scans, self.thread.session_context_vector)
        return {lead.id: lead for lead in word_leads(self.conversation.id, moments)}

    def routed(self) -> RoutedThread:
        """The conversation with its scans and routes."""
        return RoutedThread(conversation=self.conversation, scans=self.scans, thread=self.thread, routes=self.routes)

    def questions(self, histories: HistoryLookup | None) -> list[Question]:
        """What is to be asked now: routed, new or changed, and not answered in the same words and context before."""
        thread, wanted = self.routed(), self._open | self.failures.keys()
        self._earlier = self._earlier.grown(self.conversation.messages)
        questions = [
            question_of(thread, place, histories, self._earlier)
            for place, message in enumerate(self.conversation.messages)
            if message.id in wanted and self._is_read(place)
        ]
        answered = still_valid(questions, self.answers)
        self.failures = {}
        self._open.clear()
        return [question for question in questions if question.message.id not in answered]

    def add_answer(self, message_id: str, answer: Evaluation | None, failure: JudgeError | None) -> None:
        """Take the judge's answer about a message, or why there is none."""
        self._stale.add(message_id)
        if answer is not None:
            self.answers[message_id] = answer
        else:
            self.answers.pop(message_id, None)
            self.failures[message_id] = failure or JudgeError("the judge gave no answer")

    def evaluation(self, place: int, judge: Judge) -> Evaluation:
        """The evaluation of a message: an answer, or the state that says why there is none."""
        message = self.conversation.messages[place]
        is_read = self._is_read(place)
        answer = self.answers.get(message.id) if is_read else None
        if answer is not None:
            return answer
        failure = self.failures.get(message.id)
        state = unread(message, judge, failure)
        return state if failure or not is_read else msgspec.structs.replace(state, reason=NOT_YET)

    @property
    def draft(self) -> Proposal:
        """What the rules ask for in this conversation, whatever is flagged elsewhere."""
        if self._draft is None:
            self._draft = propose(self.conversation, self.scans, self.thread, self.routing.policy)
        return self._draft

    def _is_read(self, place: int) -> bool:
        return self.routing.read_all or self.routes[place].depth != "skip"

    def make_rows(self, judge: Judge) -> list[Row]:
        """Make the rows of what is new; the rows, with their event times, that are not what they were."""
        messages = self.conversation.messages
        for place, message in enumerate(messages):
            if message.id in self._stale:
                parts = message, self.scans[place], self.routes[place], self.evaluation(place, judge)
                self._plain[message.id] = rounded(Row.of(*parts))
        foreign = is_foreign(self._plain.values())
        if foreign != self._foreign:
            self._foreign, self._stale = foreign, set(self._plain)
        made = [with_row_scale(self._plain[message.id], foreign) for message in messages if message.id in self._stale]
        self.rows |= {row.id: row for row in with_stance(made, self.conversation)}
        self._stale.clear()
        return self._redated()

    def _redated(self) -> list[Row]:
        now = {row.id: row for row in with_event_times(self.rows[message.id] for message in self.conversation.messages)}
        changed = [row for row in now.values() if self._is_other(row)]
        earlier, self._dated = self._stored | self._dated, now
        touched = self.changed | {row.id for row in changed if row.id in earlier}
        self.late = tuple(name for name in now if name in touched and name not in self._new_ids)
        return changed

    def _is_other(self, row: Row) -> bool:
        """Whether a row differs from its last version, or from the stored one."""
        before = self._dated.get(row.id)
        if before is None:
            return self._stored.get(row.id) != msgspec.structs.replace(row, text=None, hits=())
        return before is not row and before != row

    def as_update(self) -> ConversationUpdate:
        """The conversation as an update of the store."""
        return ConversationUpdate(
            conversation=self.conversation,
            scans=self.scans,
            thread=self.thread,
            routes=self.routes,
            named=frozenset(message.id for message in self.messages_by_id.values() if message.target is not None),
            changed=frozenset(self.changed),
        )

    def mark_saved(self) -> None:
        """Take over that all that is new is stored."""
        for pending in (self.changed, self.detached, self.former_agents, self._new_ids):
            pending.clear()
        self.is_due, self.has_new_head = bool(self.failures), False


def _file(message: Message) -> str:
    """The file that brought it; "" where a program did."""
    return message.source_ref.file if message.source_ref else ""


def _as_stored(message: Message) -> Message:
    """The message with agent and time as a store has them."""
    (settled,) = normalize_messages([msgspec.structs.replace(message, target=None)], message.conversation)
    return msgspec.structs.replace(settled, target=message.target)


RECALL = 0.8  # of harmful messages on the triage model's labels: about what the batch budget of .45 reads there


class RoutingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a live run; the same for every conversation, whatever else comes.

    ``cut`` is where reading ends, None where no triage model says so; ``rate`` is the audit sample's.
    """

    policy: Policy
    cut: BudgetCutoff | None
    seed: int
    rate: float
    read_all: bool


def build_routing_config(
    judge: Judge, book: SignalBook, *, recall: float | None, seed: int, read_all: bool, policy: Policy | None
) -> RoutingConfig:
    """The routing of a run; a judge that reads for free reads everything unless a ``recall`` is asked for.

    A batch run with the same ``recall`` and a ``sample_minimum`` of 0 routes the same messages alike.
    """
    policy = policy or load_policy()
    asked = RECALL if recall is None else recall
    cut = None
    if book.triage is not None:
        reached = book.triage.threshold_for(asked)
        cut = for_recall(reached.threshold, reached.recall, asked)
    return RoutingConfig(
        policy=policy,
        cut=cut,
        seed=seed,
        rate=policy.sample_rate,
        read_all=read_all or (judge.reads_everything and recall is None),
    )
