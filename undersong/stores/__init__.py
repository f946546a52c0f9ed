"""The stores: where conversations, scans, evaluations and findings are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from undersong.models import Conversation, Evaluation, Finding, Message, Route, Scan, ThreadScan


class Store(Protocol):
    """Keeps what the steps produced; every write is atomic, and writing the same thing again changes nothing."""

    def put_conversation(self, conversation: Conversation, scans: tuple[Scan, ...], thread: ThreadScan) -> None:
        """Keep a conversation with its scans; a newer version of the same id replaces the older one."""
        ...

    def conversation(self, conversation_id: str) -> tuple[Conversation, tuple[Scan, ...], ThreadScan]:
        """A conversation with its scans, as they were put; raises StoreError where it is not there."""
        ...

    def messages(self, conversation_id: str, ids: Iterable[str]) -> tuple[Message, ...]:
        """The messages of these ids in a conversation, in its order, each once; ids that it lacks are passed over."""
        ...

    def answers(self, conversation_id: str, judge_hash: str) -> dict[str, Evaluation]:
        """Message id → the evaluation that this judge gave of a message; one that cannot be read is left out."""
        ...

    def put_answers(self, answers: Iterable[tuple[str, Evaluation]]) -> None:
        """Keep (conversation id, evaluation) pairs in one transaction."""
        ...

    def put_routes(self, routes: Iterable[tuple[str, tuple[Route, ...]]]) -> None:
        """Keep (conversation id, routes of its messages) pairs, the latest ones, in one transaction."""
        ...

    def routes(self, conversation_id: str) -> tuple[Route, ...]:
        """The routes of a conversation's messages, in order; () before it was routed."""
        ...

    def evaluations(self, conversation_id: str, message_id: str) -> tuple[Evaluation, ...]:
        """What every judge said of a message."""
        ...

    def put_findings(self, conversations: Iterable[str], findings: Iterable[Finding]) -> None:
        """Keep findings under their ids, in place of the kept ones that touch one of these conversations.

        A kept finding that cannot be read goes too: nobody can say what it touches.
        """
        ...

    def findings(self) -> Iterator[Finding]:
        """All findings, in the order of their ids."""
        ...

    def find_message(self, message_id: str) -> tuple[str, ...]:
        """Ids of the conversations that hold a message of this id, in order."""
        ...

    def counts(self) -> dict[str, int]:
        """How many conversations, messages, evaluations and findings are kept."""
        ...

    def close(self) -> None:
        """Make everything durable and release the file; raises StoreError where the file is no longer there."""
        ...
