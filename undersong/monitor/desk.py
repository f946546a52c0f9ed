"""The conversations and agents of a live run in memory, and how messages become one update of the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from undersong.detect import quote, strongest_sentences
from undersong.errors import JudgeError, StoreError, UsageError
from undersong.evaluate import Histories, Thread, ask
from undersong.judges import Judge
from undersong.judges.explain import heads_of
from undersong.models import Conversation, Emerging, Evaluation, Finding, Message, Row, RuleOutcome
from undersong.monitor.agents import Agents, Found
from undersong.monitor.backwards import Backwards
from undersong.monitor.observation import Observation
from undersong.monitor.standing import Standing
from undersong.monitor.talk import Talk
from undersong.monitor.terms import Routing
from undersong.outcomes import with_outcome
from undersong.patterns import PatternRule
from undersong.scan import SignalBook
from undersong.stores import Marks, Store, Update
from undersong.stores.forget import Forgotten
from undersong.why import with_why

TALKS = 2_048  # conversations that are held; then all are read again as they are needed
PARTIES = 16  # of a conversation, up to which what came of findings is told of all of them with every message
LIVE = "live"  # the format of a conversation that no file brought


class Desk:
    """Everything that a live run holds in memory; what it holds may be dropped at any time."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        agents: Agents,
        book: SignalBook,
        routing: Routing,
        rules: Sequence[PatternRule],
        histories: Histories | None,
    ) -> None:
        self._store, self._judge, self._book, self._routing = store, judge, book, routing
        self._agents, self._histories, self._rules = agents, histories, rules
        self._standing: tuple[int, Standing] | None = None  # and the store's change that it is of
        self._spare: dict[tuple[str, str], Evaluation] = {}  # answers that the store does not have yet
        self.drop()

    def drop(self) -> None:
        """Hold nothing but answers that are not kept yet: they may have been paid for."""
        self._talks: dict[str, Talk] = {}
        self._versions: dict[str, int] = {}
        self._indexed: set[str] = set()
        self._backwards = Backwards(self._routing.policy.look_back)
        self._forgotten = Forgotten(self._store.graves())
        self._agents.forget()

    def talk(self, name: str) -> Talk:
        """A conversation as the store has it; raises UsageError where the store was told to forget it."""
        if name not in self._talks:
            if self._forgotten.conversation(name):
                what = f"conversation {name}: this store was told to forget it"
                raise UsageError(what, remedy="use another store")
            self._versions[name] = self._store.marks((name,), (), self._judge.hash).conversations[name]
            kept = self._store.kept(name)
            if kept is None:
                self._talks[name] = Talk(Conversation(id=name, source_format=LIVE), self._book, self._routing)
            else:
                answers = self._store.answers(name, self._judge.hash)
                rows = self._store.thread(name, self._judge.hash)
                self._talks[name] = Talk.restored(kept, answers, rows, self._book, self._routing)
        return self._talks[name]

    def refresh(self, names: Iterable[str]) -> None:
        """Drop everything where somebody else wrote to one of these conversations."""
        held = [name for name in names if name in self._talks]
        now = self._store.marks(held, (), self._judge.hash).conversations
        if len(self._talks) > TALKS or any(now[name] != self._versions[name] for name in held):
            self.drop()

    def take(self, messages: Sequence[Message], heads: Sequence[Conversation] = ()) -> list[Observation] | None:
        """Take messages with all that follows from them; None where somebody else wrote in between."""
        names = dict.fromkeys([message.conversation for message in messages] + [head.id for head in heads])
        self.refresh(names)
        touched = {name: self.talk(name) for name in names}
        for head in heads:
            touched[head.id].begin(head)
        messages = [self._placed(message) for message in messages]
        new = [touched[message.conversation].put(message) for message in messages]
        touched = {name: talk for name, talk in touched.items() if talk.is_due}
        for talk in touched.values():
            talk.look()
        touched |= self._look_back(touched)
        for talk in touched.values():
            talk.route()
        self._read(touched)
        found = self._written(touched)
        if found is None:
            return None
        return self._told(messages, new, found, touched)

    def end(self, agents: Sequence[str]) -> Found | None:
        """No row follows for these agents for now; None where somebody else wrote in between."""
        marks = Marks({}, self._store.marks((), agents, self._judge.hash).agents)
        self._agents.load(marks.agents)
        return self._kept(self._finished(self._agents.finish(agents), ()), Update(judge_hash=self._judge.hash), marks)

    def _placed(self, message: Message) -> Message:
        """The message without what the store was told to forget, at the end where it has no place."""
        talk = self._talks[message.conversation]
        given = msgspec.structs.replace(talk.conversation, messages=(message,))
        message = self._forgotten.without(given).messages[0]
        if message.position >= 0:
            return message
        known = talk.given.get(message.id)
        place = (
            max((each.position for each in talk.given.values()), default=-1) + 1 if known is None else known.position
        )
        return msgspec.structs.replace(message, position=place)

    def _look_back(self, touched: dict[str, Talk]) -> dict[str, Talk]:
        """The conversations in which a flag of these calls for other messages than before."""
        pairs = {pair for talk in touched.values() for pair in self._backwards.look(talk)}
        for agent in sorted({agent for agent, _ in pairs} - self._indexed):
            for name in self._store.conversations_with(agent):
                if not self._backwards.known(name) and not self._forgotten.conversation(name):
                    self._backwards.look(self.talk(name))
            self._indexed.add(agent)
        called = self._backwards.called(self._backwards.sharing(pairs) | touched.keys())
        found = {}
        for name, also in called.items():
            if also != self.talk(name).also:
                found[name] = self.talk(name)
                found[name].also = also
        return found

    def _read(self, touched: dict[str, Talk]) -> None:
        """Have the judge read what is to be read; what it says is held until the store has it."""
        for (name, message_id), spare in self._spare.items():
            if name in touched:
                touched[name].answers[message_id] = spare
        questions = [question for talk in touched.values() for question in talk.questions(self._histories)]
        if not questions:
            return
        answers, failure = ask(self._judge, questions)
        for question, answer in zip(questions, answers, strict=True):
            message = question.message
            touched[message.conversation].take(message.id, answer, failure)
            if answer is not None:
                self._spare[message.conversation, message.id] = answer

    def _written(self, touched: dict[str, Talk]) -> Found | None:
        rows = [row for talk in touched.values() for row in talk.make_rows(self._judge)]
        lost = {agent for talk in touched.values() for agent in talk.lost}
        near = {agent for talk in touched.values() if len(talk.agents) <= PARTIES for agent in talk.agents}
        moved = sorted({row.agent for row in rows} | lost)
        agents = sorted({*moved, *near})
        marks = Marks(
            {name: self._versions[name] for name in touched},
            self._store.marks((), agents, self._judge.hash).agents,
        )
        self._agents.load(marks.agents)
        found = self._finished(self._agents.feed(rows, moved), touched.values())
        update = Update(
            judge_hash=self._judge.hash,
            spoken=tuple(talk.spoken() for talk in touched.values() if talk.changed or talk.has_new_head),
            left=tuple((name, each) for name, talk in touched.items() for each in sorted(talk.left)),
            answers=tuple((name, answer) for (name, _), answer in self._spare.items()),
            rows=tuple(rows),
        )
        kept = self._kept(found, update, marks)
        if kept is not None:
            for talk in touched.values():
                talk.settle()
        return kept

    def _kept(self, found: Found, update: Update, marks: Marks) -> Found | None:
        """Put all of it into the store; None, and nothing is held any more, where somebody else wrote."""
        update = msgspec.structs.replace(update, findings=found.found, gone=found.gone)
        if not any((update.spoken, update.left, update.answers, update.rows, update.findings, update.gone)):
            return found
        now = self._store.put_update(update, marks)
        if now is None:
            self.drop()
            return None
        self._versions |= now.conversations
        self._agents.settle(found.found, found.gone, now.agents)
        self._spare.clear()
        return found

    def _finished(self, found: Found, touched: Iterable[Talk]) -> Found:
        """The findings with quotes and outcomes, and those of which the outcome is another one by now."""
        told = {each.finding_id: self._quoted(each) for each in found.found}
        for talk in touched:
            spoke = {message.agent for message in talk.conversation.messages if message.id in talk.changed}
            for each in self._agents.aimed(talk.agents, talk.conversation.id):
                name = each.finding_id
                if name in told or name in found.gone or not spoke & {each.agent, each.target}:
                    continue
                again = with_outcome(each, self._messages(each))
                if again.outcome != each.outcome:
                    told[name] = again
        return Found(tuple(told.values()), found.gone)

    def _quoted(self, finding: Finding) -> Finding:
        """The finding as an audit tells it: with quotes, what moved the scores, and what came of it."""
        messages = self._messages(finding)
        if not messages:
            return finding
        known = {(each.conversation, each.id): each for each in messages}
        rows = self._bound(finding)
        quoted = quote(finding, known, strongest=strongest_sentences(rows))
        heads = heads_of(self._judge)
        if heads is not None:
            (quoted,) = with_why((quoted,), rows, known, self._rules, heads)
        return with_outcome(quoted, messages)

    def _bound(self, finding: Finding) -> list[Row]:
        """The rows of a finding's messages."""
        found: list[Row] = []
        for name in finding.conversations:
            talk = self._talks.get(name)
            known = talk.rows.values() if talk is not None and talk.rows else self._store.thread(name, self._judge.hash)
            found += known
        places = set(zip(finding.message_conversations, finding.message_ids, strict=True))
        return [row for row in found if (row.conversation, row.id) in places]

    def _messages(self, finding: Finding) -> list[Message]:
        """All messages of a finding's conversations that the store holds; imported rows have none."""
        found: list[Message] = []
        for name in finding.conversations:
            talk = self._talks.get(name)
            if talk is not None:
                found += talk.conversation.messages
            elif self._store.length(name) is not None:
                found += self._store.conversation(name)[0].messages
        return found

    def _told(
        self, messages: Sequence[Message], new: Sequence[bool], found: Found, touched: dict[str, Talk]
    ) -> list[Observation]:
        places = {name: self._talks[name].places for name in {message.conversation for message in messages}}
        shares = _shared(messages, found)
        observations = []
        for number, (message, is_new) in enumerate(zip(messages, new, strict=True)):
            talk = self._talks[message.conversation]
            place = places[message.conversation][message.id]
            last = number == len(messages) - 1
            observations.append(
                Observation(
                    message=talk.conversation.messages[place],
                    route=talk.routes[place],
                    evaluation=talk.evaluation(place, self._judge),
                    found=shares[number],
                    retracted=found.gone if last else (),
                    late=tuple(touched[message.conversation].late) if last and message.conversation in touched else (),
                    is_new=is_new,
                )
            )
        return observations

    def rows(self, talk: Talk) -> dict[str, Row]:
        """The rows of a conversation, also of one that was only read from the store."""
        if not talk.routes:
            talk.route()
        talk.make_rows(self._judge)
        return talk.rows

    def thread(self, name: str) -> tuple[Thread, tuple[Row, ...]]:
        """A conversation as it stands, with its rows; raises StoreError where the store has no such one."""
        self.refresh((name,))
        talk = self.talk(name)
        messages = talk.conversation.messages
        if not messages:
            raise StoreError(f"no conversation '{name}'", remedy="observe its messages first")
        rows = self.rows(talk)
        thread = Thread(conversation=talk.conversation, scans=talk.scans, thread=talk.thread, routes=talk.routes)
        return thread, tuple(rows[message.id] for message in messages)

    def standing(self) -> Standing:
        """How all rows of the judge stand together by now; they are read again where anything was written since."""
        now = self._store.changes()
        if self._standing is None or self._standing[0] != now:
            histories = self._store.histories(self._judge.hash)
            rows = (row for history in histories for row in history.rows)
            self._standing = now, Standing(rows, self._judge.gives)
        return self._standing[1]

    def knows(self, name: str) -> bool:
        """Whether the store has a conversation of this name."""
        return self._store.length(name) is not None

    def agents(self) -> list[str]:
        """Everybody of whom the judge read something."""
        return [each.agent for each in self._store.agents(self._judge.hash)]

    def emerging(self, agent: str) -> tuple[Emerging, ...]:
        """The sequences of an agent that are on their way."""
        self._agents.load(self._store.marks((), (agent,), self._judge.hash).agents)
        return self._agents.emerging(agent)

    def findings(self, agent: str | None) -> tuple[Finding, ...]:
        """The findings that stand in the store."""
        return tuple(self._store.findings(agent))

    def outcomes(self) -> tuple[RuleOutcome, ...]:
        """What became of every rule on the histories that are held."""
        return self._agents.outcomes()

    def failed(self) -> JudgeError | None:
        """Why the judge did not come to a message that is held, None where it came to all."""
        return next((each for talk in self._talks.values() for each in talk.failures.values()), None)


def _shared(messages: Sequence[Message], found: Found) -> list[tuple[Finding, ...]]:
    """Each finding with the last of the messages that is part of it, else with the last of all."""
    if not messages:
        return []
    places = {(message.conversation, message.id): number for number, message in enumerate(messages)}
    shares: list[list[Finding]] = [[] for _ in messages]
    for finding in found.found:
        parts = zip(finding.message_conversations, finding.message_ids, strict=True)
        shares[max((places[part] for part in parts if part in places), default=len(messages) - 1)].append(finding)
    return [tuple(share) for share in shares]
