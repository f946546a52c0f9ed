"""Claims that their agent takes back in later words, and with which words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from undersong.datafiles.verdict_config import ledger_config, pattern
from undersong.models import Quote
from undersong.models.verdict import LedgerKind
from undersong.verdict.admissions import Retraction, retractions
from undersong.verdict.claim_kinds import ledger_kind
from undersong.verdict.objections import SAID
from undersong.verdict.transcript import ASKS, Transcript, TranscriptTurn, quote, trimmed

RETRACTED = 3  # requests back from words that take a claim back to that claim


def withdrawn_claims(transcript: Transcript) -> Iterator[tuple[tuple[str, LedgerKind], Quote]]:
    """The claims, by message and kind, that their agent takes back in later words, with those words."""
    claiming: dict[str, list[tuple[TranscriptTurn, frozenset[LedgerKind]]]] = {}
    for turn in transcript.turns:
        if not turn.is_agent:
            continue
        own = claiming.setdefault(turn.message.agent, [])
        for retraction in retractions(turn.prose) if own else ():
            for earlier, kinds in _meant(transcript, turn, retraction, own):
                words = quote(turn.message, *trimmed(turn.prose, retraction.start, retraction.end))
                for kind in kinds:
                    yield (earlier.message.id, kind), words
        listed = (ledger_kind(claim, turn.prose) for claim in turn.claims if not claim.hedged)
        claimed = frozenset(each for each in listed if each is not None)
        if claimed:
            own.append((turn, claimed))


def _meant(
    transcript: Transcript,
    turn: TranscriptTurn,
    retraction: Retraction,
    claiming: Sequence[tuple[TranscriptTurn, frozenset[LedgerKind]]],
) -> Iterator[tuple[TranscriptTurn, frozenset[LedgerKind]]]:
    """The latest message with claims of the kinds that are taken back, as far as its words can still be meant."""
    if retraction.weak and not _is_doubted(transcript, turn, claiming[-1][0]):
        return
    for earlier, kinds in reversed(claiming):
        if turn.run - earlier.run > RETRACTED:
            return
        meant = kinds & retraction.kinds if retraction.kinds else kinds
        if meant:
            yield earlier, frozenset(meant)
            return
        if not retraction.kinds:
            return


def _is_doubted(transcript: Transcript, turn: TranscriptTurn, claimed: TranscriptTurn) -> bool:
    """Whether a turn works on the request of the last claim, or the person who asked since doubts it."""
    if turn.run == claimed.run:
        return True
    asked = next((each for each in reversed(transcript.turns[: turn.place]) if each.message.role in ASKS), None)
    words = ledger_config()
    doubts = pattern((words.denies, words.retractions.doubts))
    return asked is not None and turn.run - claimed.run == 1 and doubts.search(asked.prose, 0, SAID) is not None
