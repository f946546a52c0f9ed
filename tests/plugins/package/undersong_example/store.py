"""A store in memory: ``--store memory://NAME``. It has what has no default, which is enough for audits and sweeps."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from undersong.models import Conversation, Evaluation, Finding, Route, Row, Scan, ThreadScan
from undersong.stores.protocol import BEGINNING, AgentEntry, AgentHistory, AgentSweep, Cursor, JudgeEntry, Store


class MemoryStore(Store):
    """Dictionaries by id."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._conversations: dict[str, tuple[Conversation, tuple[Scan, ...], ThreadScan]] = {}
        self._routes: dict[str, tuple[Route, ...]] = {}
        self._answers: dict[tuple[str, str, str], Evaluation] = {}
        self._rows: dict[tuple[str, str, str], Row] = {}
        self._findings: dict[str, Finding] = {}
        self._cursors: dict[str, Cursor] = {}

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        self._conversations[conversation.id] = conversation, scans, thread

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        return self._conversations[conversation_id]

    def conversations(self) -> Iterator[str]:
        return iter(sorted(self._conversations))

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        self._routes |= dict(routes)

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        return self._routes.get(conversation_id, ())

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        self._answers |= {(name, each.message_id, each.judge_hash): each for name, each in answers}

    def evaluations(self, conversation_id: str, message_id: str | None = None) -> tuple[Evaluation, ...]:
        keys = sorted(key for key in self._answers if key[0] == conversation_id and message_id in (None, key[1]))
        return tuple(self._answers[key] for key in keys)

    def append(self, rows: Iterable[Row], findings: Iterable[Finding] = (), *, removed: Iterable[str] = ()) -> None:
        for row in rows:
            key = row.conversation, row.id, row.judge_hash or ""
            if key not in self._rows or row.state != "unread" or self._rows[key].state == "unread":
                self._rows[key] = row
                self._cursors["changes"] = Cursor(self.changes() + 1)
        for name in removed:
            self._findings.pop(name, None)
        self._findings |= {each.finding_id: each for each in findings}

    def history(self, agent: str, judge_hash: str) -> tuple[Row, ...]:
        rows = [row for row in self._rows.values() if (row.agent, row.judge_hash) == (agent, judge_hash)]
        return tuple(sorted(rows, key=lambda r: (r.time is not None, r.time and r.time.timestamp(), r.position, r.id)))

    def histories(self, judge_hash: str, after: Cursor = BEGINNING, least: int = 0) -> Iterator[AgentHistory]:
        for entry in self.agents(judge_hash):
            if entry.read >= least and (self.changes(), entry.agent) > after:
                yield AgentHistory(entry.agent, self.changes(), self.history(entry.agent, judge_hash))

    def thread(self, conversation_id: str, judge_hash: str) -> tuple[Row, ...]:
        rows = [r for r in self._rows.values() if (r.conversation, r.judge_hash) == (conversation_id, judge_hash)]
        return tuple(sorted(rows, key=lambda row: (row.position, row.id)))

    def threads(self) -> Iterator[str]:
        return iter(sorted({row.conversation for row in self._rows.values()}))

    def agents(self, judge_hash: str) -> tuple[AgentEntry, ...]:
        names = sorted({row.agent for row in self._rows.values() if row.judge_hash == judge_hash})
        return tuple(self._entry(name, self.history(name, judge_hash)) for name in names)

    def judges(self) -> tuple[JudgeEntry, ...]:
        names = {row.judge_hash or "": row.judge or "" for row in self._rows.values()}
        counts = {name: sum(row.judge_hash == name for row in self._rows.values()) for name in names}
        return tuple(JudgeEntry(judge_hash=hash_, judge=names[hash_], rows=counts[hash_]) for hash_ in names)

    def cursor(self, name: str) -> Cursor:
        return self._cursors.get(name, BEGINNING)

    def put_sweep(
        self,
        judge_hash: str,  # noqa: ARG002 - there is one list of findings
        swept: Sequence[AgentSweep],
        patterns: Collection[str],
        cursors: Mapping[str, Cursor],
    ) -> None:
        agents = {each.agent for each in swept}
        gone = [name for name, f in self._findings.items() if f.agent in agents and f.pattern in patterns]
        self.append((), [finding for each in swept for finding in each.findings], removed=gone)
        self._cursors |= cursors

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        audited = set(conversations)
        gone = [name for name, finding in self._findings.items() if audited & set(finding.conversations)]
        self.append((), findings, removed=gone)

    def findings(self, agent: str | None = None) -> Iterator[Finding]:
        return (self._findings[name] for name in sorted(self._findings) if agent in (None, self._findings[name].agent))

    def facts(self) -> dict[str, str]:
        return {"store": self._address}

    def counts(self) -> dict[str, int]:
        return {"conversations": len(self._conversations), "findings": len(self._findings)}

    @staticmethod
    def _entry(agent: str, rows: Sequence[Row]) -> AgentEntry:
        read = [row for row in rows if row.state == "scored"]
        threads = {row.conversation for row in rows}
        ranked = sum(row.scale == "rank" for row in read)
        return AgentEntry(agent=agent, messages=len(rows), read=len(read), ranked=ranked, threads=len(threads))


def open_store(address: str, read_only: bool) -> MemoryStore:  # noqa: ARG001
    """The store of an address; a new one at each call."""
    return MemoryStore(address)
