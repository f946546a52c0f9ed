"""Answers go into the ledger in groups, and nobody goes on before his own is there."""

from __future__ import annotations

import asyncio

from undersong.judges.terms import AnswerLedger, LedgerEntry


class GroupCommitter:
    """Keeps answers that arrive together in one transaction, without a wait for later ones: each waits for its own."""

    def __init__(self, ledger: AnswerLedger) -> None:
        self._ledger = ledger
        self._waiting: list[LedgerEntry] = []
        self._commit: asyncio.Future[None] | None = None

    async def commit(self, answer: LedgerEntry) -> None:
        """Returns when the answer is kept; raises what the ledger raises."""
        self._waiting.append(answer)
        if self._commit is None:
            loop = asyncio.get_running_loop()
            self._commit = loop.create_future()
            loop.call_soon(self._flush, self._commit)
        await asyncio.shield(self._commit)

    def _flush(self, commit: asyncio.Future[None]) -> None:
        answers, self._waiting, self._commit = self._waiting, [], None
        try:
            self._ledger.keep(answers)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for the commit must hear it
            commit.set_exception(error)
        else:
            commit.set_result(None)
