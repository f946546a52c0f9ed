"""The in-memory state of a live run: messages become one update of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from undersong.errors import JudgeError, StoreError, UsageError
from undersong.judges.protocol import Judge, Segment
from undersong.models import (
    Confirmed,
    Conversation,
    Emerging,
    Evaluation,
    Finding,
    Lead,
    Message,
    Record,
    RetractedFinding,
    Route,
    Row,
    SignalBand,
)
from undersong.monitor.agents import AgentTracker
from undersong.monitor.conversation import ConversationState, RoutingConfig
from undersong.monitor.live_leads import changed_leads, leads_to_tell
from undersong.patterns.detect import quote, strongest_sentences
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.live.changes import Changes
from undersong.patterns.outcome import with_outcome
from undersong.pipeline.case_builder import with_attribution
from undersong.pipeline.evaluate import FailureTally, HistoryLookup, RoutedThread, ask
from undersong.pipeline.finding_reader import stored_texts
from undersong.pipeline.judge_session import confirmations_of
from undersong.pipeline.stages import AuditState
from undersong.routing.budget import TRIAGE
from undersong.routing.lookback import DirectedMessage, LookBackIndex
from undersong.rows.corpus_scales import NullBandCounter, PercentileRanks, table_name, with_band
from undersong.scan import SignalBook
from undersong.stores.erasure import Forgotten
from undersong.stores.protocol import Store, StoreVersions, Update
from undersong.verdict import constraint_segments

MAX_CONVERSATIONS = 2_048  # conversations that are held; then all are read again as they are needed
MAX_PARTICIPANTS = 16  # of a conversation, up to which what came of findings is told of all of them with every message
LIVE = "live"  # the format of a conversation that no file brought


class MonitorState:
    """A cache of the store's conversations and agents; it may be dropped at any time."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        agents: AgentTracker,
        book: SignalBook,
        routing: RoutingConfig,
        rules: Sequence[PatternRule],
        histories: HistoryLookup | None,
    ) -> None:
        self.store, self._judge, self._book, self._routing = store, judge, book, routing
        self.agents, self._histories, self._rules = agents, histories, rules
        self._corpus_ranks: tuple[int, CorpusRanks] | None = None  # and the store's change that it is of
        self.tally = FailureTally()
        self._constraint_failure: JudgeError | None = None
        self._spare: dict[tuple[str, str], Evaluation] = {}  # answers that the store does not have yet
        self.drop()

    def drop(self) -> None:
        """Hold nothing but answers that are not stored yet: they may have been paid for."""
        self._conversations: dict[str, ConversationState] = {}
        self._versions: dict[str, int] = {}
        self._indexed: set[str] = set()
        self._lookback = LookbackByPair(self._routing.policy.look_back)
        self._forgotten = Forgotten(self.store.tombstones())
        self.agents.clear()

    def conversation(self, name: str) -> ConversationState:
        """A conversation as the store has it; raises UsageError where the store was told to forget it."""
        if name not in self._conversations:
            if self._forgotten.conversation(name):
                what = f"conversation {name}: this store was told to forget it"
                raise UsageError(what, remedy="use another store")
            self._versions[name] = self.store.versions((name,), (), self._judge.hash).conversations[name]
            stored = self.store.stored_conversation(name)
            if stored is None:
                head = Conversation(id=name, source_format=LIVE)
                state = ConversationState(head, self._book, self._routing)
            else:
                answers = self.store.answers(name, self._judge.hash)
                rows = self.store.thread(name, self._judge.hash)
                state = ConversationState.restored(stored, answers, rows, self._book, self._routing)
            self._conversations[name] = state
        return self._conversations[name]

    def refresh(self, names: Iterable[str]) -> None:
        """Drop everything where somebody else wrote to one of these conversations."""
        loaded = [name for name in names if name in self._conversations]
        now = self.store.versions(loaded, (), self._judge.hash).conversations
        if len(self._conversations) > MAX_CONVERSATIONS or any(now[name] != self._versions[name] for name in loaded):
            self.drop()

    def take(self, messages: Sequence[Message], heads: Sequence[Conversation] = ()) -> list[Observation] | None:
        """Take messages with all that follows from them; None where somebody else wrote in between."""
        names = dict.fromkeys([message.conversation for message in messages] + [head.id for head in heads])
        self.refresh(names)
        touched = {name: self.conversation(name) for name in names}
        for head in heads:
            touched[head.id].begin(head)
        messages = self._placed(messages)
        new = [touched[message.conversation].add(message) for message in messages]
        touched = {name: state for name, state in touched.items() if state.is_due}
        for state in touched.values():
            state.scan()
        touched |= self._look_back(touched)
        for state in touched.values():
            state.route()
        try:
            self._read(touched)
        except (KeyboardInterrupt, SystemExit):  # the messages are kept, and asked about by the next run
            self._save_changes(touched)
            raise
        changes = self._save_changes(touched)
        if changes is None:
            return None
        asked = self._asked_of_constraints(messages, new)
        observations = self._observations(messages, new, changes, touched, asked)
        for place, (fresh, gone) in leads_to_tell([each.message.conversation for each in observations], touched):
            observations[place] = msgspec.structs.replace(observations[place], leads=fresh, leads_gone=gone)
        return observations

    def _asked_of_constraints(self, messages: Sequence[Message], new: Sequence[bool]) -> dict[Place, list[Confirmed]]:
        """What the judge says of words of hard constraints in messages that are new, with those around them."""
        fresh = {(each.conversation, each.id) for each, is_new in zip(messages, new, strict=True) if is_new}
        places: list[tuple[str, Segment]] = []
        if "mechanisms" in self._judge.gives and self._judge.confirms:
            for name in dict.fromkeys(name for name, _ in fresh):
                state = self._conversations[name]
                segments = constraint_segments(state.conversation, state.scans)
                places += [(name, each) for each in segments if (name, each.place) in fresh]
        run = AuditState()
        answers: dict[Place, list[Confirmed]] = {}
        confirmations = confirmations_of(self._judge, [segment for _, segment in places], run)
        for (name, segment), answer in zip(places, confirmations, strict=True):
            answers.setdefault((name, segment.place), []).append(answer)
        if places:
            self._constraint_failure = run.failure
        return answers

    def end(self, agents: Sequence[str], *, settle: bool) -> Changes | None:
        """No row follows for these agents for now; None where somebody else wrote in between."""
        versions = StoreVersions({}, self.store.versions((), agents, self._judge.hash).agents)
        self.agents.load(versions.agents)
        changes = self._with_outcomes(self.agents.finish(agents, settle=settle), ())
        return self._store_update(changes, Update(judge_hash=self._judge.hash), versions)

    def _placed(self, messages: Sequence[Message]) -> list[Message]:
        """The messages without what the store was told to forget, each at its place in its conversation."""
        by_name: dict[str, list[int]] = {}
        placed = []
        for number, message in enumerate(messages):
            state = self._conversations[message.conversation]
            single = msgspec.structs.replace(state.conversation, messages=(message,))
            placed.append(self._forgotten.without(single).messages[0])
            by_name.setdefault(message.conversation, []).append(number)
        for name, numbers in by_name.items():
            moved = self._conversations[name].placed([placed[number] for number in numbers])
            for number, message in zip(numbers, moved, strict=True):
                placed[number] = message
        return placed

    def _look_back(self, touched: dict[str, ConversationState]) -> dict[str, ConversationState]:
        """The conversations in which a flag of these calls for other messages than before."""
        pairs = {pair for state in touched.values() for pair in self._lookback.update(state)}
        for agent in sorted({agent for agent, _ in pairs} - self._indexed):
            for name in self.store.conversations_with(agent):
                if not self._lookback.contains(name) and not self._forgotten.conversation(name):
                    self._lookback.update(self.conversation(name))
            self._indexed.add(agent)
        called = self._lookback.reads_for(self._lookback.sharing(pairs) | touched.keys())
        changed = {}
        for name, also in called.items():
            if also != self.conversation(name).also:
                changed[name] = self.conversation(name)
                changed[name].also = also
        return changed

    def _read(self, touched: dict[str, ConversationState]) -> None:
        """Have the judge read what is to be read; its answers are held until the store has them."""
        for (name, message_id), spare in self._spare.items():
            if name in touched:
                touched[name].answers[message_id] = spare
        questions = [question for state in touched.values() for question in state.questions(self._histories)]
        if not questions:
            return
        answers, failure = ask(self._judge, questions)
        for question, answer in zip(questions, answers, strict=True):
            message = question.message
            touched[message.conversation].add_answer(message.id, answer, failure)
            if answer is not None:
                self.tally.add(answer.state, answer.reason)
                self._spare[message.conversation, message.id] = answer

    def _save_changes(self, touched: dict[str, ConversationState]) -> Changes | None:
        rows = [row for state in touched.values() for row in state.make_rows(self._judge)]
        lost = {agent for state in touched.values() for agent in state.former_agents}
        near = {agent for state in touched.values() if len(state.agents) <= MAX_PARTICIPANTS for agent in state.agents}
        moved = sorted({row.agent for row in rows} | lost)
        versions = StoreVersions(
            {name: self._versions[name] for name in touched},
            self._load({*moved, *near, *self.agents.addressed_by(rows)}),
        )
        fed = self.agents.feed(rows, {*moved, *(self.agents.linked(moved) & versions.agents.keys())})
        changes = self._with_outcomes(fed, touched.values())
        leads = changed_leads(touched)
        update = Update(
            judge_hash=self._judge.hash,
            conversations=tuple(state.as_update() for state in touched.values() if state.changed or state.has_new_head),
            detached=tuple((name, each) for name, state in touched.items() for each in sorted(state.detached)),
            answers=tuple((name, answer) for (name, _), answer in self._spare.items()),
            rows=tuple(rows),
            leads=leads if self.store.keeps_reviews else (),
        )
        saved = self._store_update(changes, update, versions)
        if saved is not None:
            for state in touched.values():
                state.mark_saved()
        return saved

    def _load(self, agents: Iterable[str]) -> dict[str, int]:
        """Bring these agents up to date, and those whom they address or who addressed them; the versions of all."""
        versions = self.store.versions((), sorted(agents), self._judge.hash).agents
        self.agents.load(versions)
        linked = self.agents.linked(versions) - versions.keys()
        if linked:
            versions = {**versions, **self.store.versions((), sorted(linked), self._judge.hash).agents}
            self.agents.load(versions)
        return versions

    def _store_update(self, changes: Changes, update: Update, versions: StoreVersions) -> Changes | None:
        """Put all of it into the store; None, and nothing is held any more, where somebody else wrote."""
        update = msgspec.structs.replace(update, findings=changes.findings, removed=tuple(sorted(changes.removed)))
        if update == Update(judge_hash=update.judge_hash):
            return changes
        now = self.store.put_update(update, versions)
        if now is None:
            self.drop()
            return None
        self._versions |= now.conversations
        self.agents.mark_saved(changes, now.agents)
        self._spare.clear()
        return changes

    def _with_outcomes(self, changes: Changes, touched: Iterable[ConversationState]) -> Changes:
        """The findings with quotes and outcomes, and those of which the outcome is another one by now."""
        findings_by_id = {each.finding_id: self._quoted(each) for each in changes.findings}
        for state in touched:
            spoke = {message.agent for message in state.conversation.messages if message.id in state.changed}
            for finding in self.agents.findings_toward(state.agents, state.conversation.id):
                name = finding.finding_id
                if name in findings_by_id or name in changes.removed or not spoke & {finding.agent, finding.target}:
                    continue
                again = with_outcome(finding, self._messages(finding))
                if again.outcome != finding.outcome:
                    findings_by_id[name] = again
        return Changes(tuple(findings_by_id.values()), changes.retracted)

    def _quoted(self, finding: Finding) -> Finding:
        """The finding as in an audit: with quotes, what moved the scores, and its outcome."""
        messages = self._messages(finding)
        if not messages:
            return finding
        messages_by_id = {(each.conversation, each.id): each for each in messages}
        rows = self._rows_of(finding)
        quoted = quote(finding, messages_by_id, strongest=strongest_sentences(rows))
        if self._judge.heads is not None:
            (quoted,) = with_attribution((quoted,), rows, messages_by_id, self._rules, self._judge.heads)
        return with_outcome(quoted, messages)

    def _rows_of(self, finding: Finding) -> list[Row]:
        """The rows of a finding's messages."""
        rows: list[Row] = []
        for name in finding.conversations:
            state = self._conversations.get(name)
            rows += state.rows.values() if state and state.rows else self.store.thread(name, self._judge.hash)
        places = set(zip(finding.message_conversations, finding.message_ids, strict=True))
        return [row for row in rows if (row.conversation, row.id) in places]

    def _messages(self, finding: Finding) -> list[Message]:
        """All messages of a finding's conversations that the store holds; imported rows have none."""
        return [message for name in finding.conversations for message in self.messages(name)]

    def messages(self, name: str) -> Sequence[Message]:
        """The messages of a conversation as it is by now; none where neither memory nor the store has it."""
        state = self._conversations.get(name)
        return state.conversation.messages if state is not None else stored_texts(self.store)(name)

    def _observations(
        self,
        messages: Sequence[Message],
        new: Sequence[bool],
        changes: Changes,
        touched: dict[str, ConversationState],
        constraints: Mapping[Place, Sequence[Confirmed]],
    ) -> list[Observation]:
        places = {name: self._conversations[name].places for name in {message.conversation for message in messages}}
        shares = _assign_findings(messages, changes)
        observations = []
        for number, (message, is_new) in enumerate(zip(messages, new, strict=True)):
            state = self._conversations[message.conversation]
            place = places[message.conversation][message.id]
            last = number == len(messages) - 1
            observations.append(
                Observation(
                    message=state.conversation.messages[place],
                    route=state.routes[place],
                    evaluation=state.evaluation(place, self._judge),
                    found=shares[number],
                    retracted=changes.retracted if last else (),
                    late=tuple(touched[message.conversation].late) if last and message.conversation in touched else (),
                    is_new=is_new,
                    constraints=tuple(constraints.get((message.conversation, message.id), ())) if is_new else (),
                )
            )
        return observations

    def rows(self, state: ConversationState) -> dict[str, Row]:
        """The rows of a conversation, also of one that was only read from the store."""
        if not state.routes:
            state.route()
        state.make_rows(self._judge)
        return state.rows

    def thread(self, name: str) -> tuple[RoutedThread, tuple[Row, ...]]:
        """A conversation as it is now, with its rows; raises StoreError where the store has no such one."""
        self.refresh((name,))
        state = self.conversation(name)
        messages = state.conversation.messages
        if not messages:
            raise StoreError(f"no conversation '{name}'", remedy="observe its messages first")
        rows = self.rows(state)
        return state.routed(), tuple(rows[message.id] for message in messages)

    def corpus_ranks(self) -> CorpusRanks:
        """The ranks among all rows of the judge by now; they are read again where anything was written since."""
        now = self.store.changes()
        if self._corpus_ranks is None or self._corpus_ranks[0] != now:
            histories = self.store.histories(self._judge.hash)
            rows = (row for history in histories for row in history.rows)
            self._corpus_ranks = now, CorpusRanks(rows, self._judge.gives)
        return self._corpus_ranks[1]

    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """The sequences of an agent that are on their way."""
        self.agents.load(self.store.versions((), (agent,), self._judge.hash).agents)
        return self.agents.emerging(agent)

    def failed(self) -> JudgeError | None:
        """Why the judge did not come to a message that is held, a sequence or a constraint, or None."""
        reader = self.agents.reader
        failures = (each for state in self._conversations.values() for each in state.failures.values())
        of_reader = reader.failure if reader is not None else None
        return next(failures, None) or of_reader or self._constraint_failure


def _assign_findings(messages: Sequence[Message], changes: Changes) -> list[tuple[Finding, ...]]:
    """Each finding with the last of the messages that is part of it, else with the last of all."""
    if not messages:
        return []
    places = {(message.conversation, message.id): number for number, message in enumerate(messages)}
    shares: list[list[Finding]] = [[] for _ in messages]
    for finding in changes.findings:
        parts = zip(finding.message_conversations, finding.message_ids, strict=True)
        shares[max((places[part] for part in parts if part in places), default=len(messages) - 1)].append(finding)
    return [tuple(share) for share in shares]


class CorpusRanks:
    """Made from all rows of a corpus; then each row of it is given its ranks and the name of its bands."""

    def __init__(self, rows: Iterable[Row], gives: Iterable[str]) -> None:
        """``gives`` are the signals of the judge."""
        bands, names = NullBandCounter(), frozenset(gives)
        self._ranks = PercentileRanks()
        for row in rows:
            self._ranks.add(row)
            bands.add(row, names)
        self.bands: dict[str, SignalBand] = bands.bands()
        self._name = table_name(self.bands)

    def of(self, row: Row) -> Row:
        """The row as an audit of the whole corpus gives it."""
        return with_band(self._ranks.of(row), self._name)


class Observation(Record, frozen=True, kw_only=True):
    """What became of one message.

    ``message`` is as it is kept, with its agent, target and place. ``evaluation`` says in its state whether a judge
    scored it; where the judge failed, its reason says so and the message is asked about again with the next one.
    ``found`` are findings that are new or other than they were; each takes the place of one with its id, and of the
    one that it ``replaces``. ``retracted`` are those that no longer hold, with the reason.
    ``late`` are the ids of earlier messages of the conversation that are read otherwise since. ``is_new`` is False for
    a message that was there already, word for word. ``constraints``: for each hard constraint whose words a new message
    has, what a judge that answers second questions says of it; a ``yes`` is a violation. ``leads`` are those from exact
    words (requests of one speaker that are rare together) that are new or grew, with no rank, since ranks need a whole
    corpus; ``leads_gone`` are the ids of those that no longer hold. Leads from what is counted need an audit.
    """

    message: Message
    route: Route
    evaluation: Evaluation
    found: tuple[Finding, ...] = ()
    retracted: tuple[RetractedFinding, ...] = ()
    late: tuple[str, ...] = ()
    is_new: bool = True
    constraints: tuple[Confirmed, ...] = ()
    leads: tuple[Lead, ...] = ()
    leads_gone: tuple[str, ...] = ()


Pair = tuple[str, str]  # agent, target
Place = tuple[str, str]  # conversation, message
LookbackReads = dict[int, str]  # place in a conversation → the flagged message of another one for which it is read


def directed_messages(state: ConversationState) -> dict[Pair, list[DirectedMessage]]:
    """The directed messages of a conversation by (agent, target): they may call for others, or be called for."""
    pairs: dict[Pair, list[DirectedMessage]] = {}
    aligned = zip(state.conversation.messages, state.scans, state.draft.ranks, strict=True)
    for place, (message, scan, rank) in enumerate(aligned):
        score = scan.triage if rank == TRIAGE else None
        directed = DirectedMessage.of(place, message, flagged=bool(scan.total), score=score)
        if directed is not None and message.target is not None:
            pairs.setdefault((directed.agent, message.target), []).append(directed)
    return pairs


class LookbackByPair:
    """The directed messages of some conversations by (agent, target), and which of them are called for."""

    def __init__(self, look_back: int) -> None:
        self._look_back = look_back
        self._pairs: dict[Pair, dict[str, list[DirectedMessage]]] = {}
        self._of: dict[str, dict[Pair, list[DirectedMessage]]] = {}

    def contains(self, conversation: str) -> bool:
        """Whether a conversation has been looked at."""
        return conversation in self._of

    def update(self, state: ConversationState) -> set[Pair]:
        """Take a conversation as it now is; the pairs of which it had or has messages."""
        name = state.conversation.id
        before, now = self._of.get(name, {}), directed_messages(state)
        for pair in before.keys() | now.keys():
            if pair in now:
                self._pairs.setdefault(pair, {})[name] = now[pair]
            else:
                del self._pairs[pair][name]
        self._of[name] = now
        return {*before, *now}

    def reads_for(self, conversations: Iterable[str]) -> dict[str, LookbackReads]:
        """What is called for in each of these conversations, over all its pairs."""
        names = set(conversations)
        reads: dict[str, LookbackReads] = {name: {} for name in names}
        for pair in {pair for name in names for pair in self._of.get(name, ())}:
            for name, called in self._reads_of_pair(pair).items():
                if name in names:
                    reads[name] |= called
        return reads

    def sharing(self, pairs: Iterable[Pair]) -> set[str]:
        """The conversations that hold a message of one of these pairs."""
        return {name for pair in pairs for name in self._pairs.get(pair, ())}

    def _reads_of_pair(self, pair: Pair) -> dict[str, LookbackReads]:
        conversations = self._pairs[pair]
        if not any(each.flag for messages in conversations.values() for each in messages):
            return {}
        same = LookBackIndex(self._look_back)
        for name, messages in conversations.items():
            for directed in messages:
                same.add_directed(name, directed)
        reads: dict[str, LookbackReads] = {}
        for earlier in same.look_back_messages():
            reads.setdefault(earlier.conversation, {})[earlier.place] = earlier.flag
        return reads
