"""``undersong review`` on a terminal: one finding after the other, a key for each decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from undersong.cli.options import echo
from undersong.cli.review_words import around_lines, item_lines, sure_lines
from undersong.core.text import counted
from undersong.models import REASONS, ReviewVerdict
from undersong.stores.review_queue import Order, Pool, QueuePlace, decide, next_places
from undersong.stores.reviewing import Reviewable, kind_and_id, reviewable, standing

if TYPE_CHECKING:
    from undersong.stores.protocol import Store

VERDICTS: dict[str, ReviewVerdict] = {"c": "confirmed", "r": "rejected", "u": "unsure"}
ZERO = 9  # the reason before that which has the key 0
KEYS = "c confirmed, r rejected, u unsure | s skip, b back, q quit | 0-9 why, n note, m around it, h how sure, ? help"
HELP = (
    "c  confirmed: the messages show it",
    "r  rejected: they do not, or the innocent reading is the better one",
    "u  unsure: the messages here do not settle it",
    *(f"{number % 10}  because: {reason}" for number, reason in enumerate(REASONS, 1)),
    "n  a note, stored with the decision",
    "m  the messages around it",
    "h  how sure the program is, by chance and confidence; the decision says that you saw it",
    "s  skip: it comes at the next call        b  back: decide anew on the last one        q  quit",
    "A decision is stored at once. `undersong review stats` says what they say of all; the next report shows them.",
)
QUIT = ("q", "\x03", "\x04", "\x1b")


@dataclass
class ReviewSession:
    """Where a person is: what was skipped, and what was decided, the last one at the end."""

    store: Store
    pools: tuple[Pool, ...]
    seed: int
    order: Order
    reviewer: str
    store_option: str = ""  # for the commands that are named
    skipped: set[str] = field(default_factory=set)
    decided: list[Reviewable] = field(default_factory=list)

    def run(self) -> None:
        """Ask until nothing is left or somebody quits."""
        before: Pool | None = None
        while (following := self._next()) is not None:
            pool, place = following
            if before == "likely" and pool == "unlikely":
                echo(["", "The likely ones are decided. These are less sure, or how sure is not known."])
            before = pool
            if not self._ask(place.candidate.item, place.draw.pool or 1):
                break
        else:
            echo(["", f"nothing is left{f', {len(self.skipped)} skipped' if self.skipped else ''}"])
        stats = f"`undersong review stats{self.store_option}`"
        echo([f"{counted(len(self.decided), 'decision')} stored; {stats} says what they say of all"])

    def _next(self) -> tuple[Pool, QueuePlace] | None:
        for pool in self.pools:
            for place in next_places(self.store, pool, self.seed, self.order, len(self.skipped) + 1):
                if kind_and_id(place.candidate.item)[1] not in self.skipped:
                    return pool, place
        return None

    def _ask(self, item: Reviewable, left: int) -> bool:
        """Show something and take a decision; False where the person quits."""
        shown, reasons, note = False, list[str](), ""
        before = standing(self.store, item)
        echo(["", "-" * 72, f"{left} to decide on" if left else "decide anew", ""])
        echo(item_lines(self.store, item, show_score=False, again=before.review if before and before.stale else None))
        echo(["", KEYS])
        while (key := click.getchar()) not in QUIT:
            if key in VERDICTS:
                self._store(item, VERDICTS[key], reasons, note, shown)
                return True
            if key == "s":
                self.skipped.add(kind_and_id(item)[1])
                echo(["skipped"])
                return True
            if key == "b" and self.decided:
                return self._back() and self._ask(item, left)
            if key == "n":
                note = click.prompt("note", default=note, show_default=bool(note))
            elif key == "h":
                shown = True
                echo(sure_lines(item))
            elif key == "m":
                echo(around_lines(self.store, item))
            elif key.isdigit() and (key != "0" or len(REASONS) > ZERO):
                reason = REASONS[int(key) - 1]
                reasons.remove(reason) if reason in reasons else reasons.append(reason)
                echo([f"because: {', '.join(reasons) or 'no reason'}"])
            else:
                echo(HELP)
            echo([KEYS])
        return False

    def _back(self) -> bool:
        """The last one again, as the store has it now; False where the person quits there."""
        last = self.decided.pop()
        return self._ask(reviewable(self.store, *kind_and_id(last)) or last, 0)

    def _store(self, item: Reviewable, verdict: ReviewVerdict, reasons: list[str], note: str, shown: bool) -> None:
        decide(
            self.store, item, verdict, datetime.now(UTC), seed=self.seed, order=self.order, reasons=tuple(reasons),
            note=note, reviewer=self.reviewer, shown_score=shown,
        )  # fmt: skip
        self.decided.append(item)
        echo([f"{verdict}{f' ({note})' if note else ''}"])
