"""A judge that is called where an event loop is running already."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.judges.dialogue import Served, make_message, question
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.protocol import Segment


def test_a_notebook_gets_its_answers_and_keeps_them(served: Served, tmp_path: Path) -> None:
    async def cell() -> tuple[str, str]:
        with SQLiteLedger(tmp_path / "store.db") as ledger:
            judge = served.judge(ledger=ledger)
            (read,) = judge.evaluate([question("hello")])
            (confirmation,) = judge.confirm(
                [Segment(mechanism="fault_admission", messages=(make_message("I made it up."),))]
            )
            return read.state, confirmation.state

    assert asyncio.run(cell()) == ("scored", "scored")
    assert asyncio.run(cell()) == ("scored", "scored")
    assert len(served.server.seen) == 2
