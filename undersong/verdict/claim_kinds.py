"""Under which kind the ledger lists a claim; how things are, headings and what somebody is told to do are none."""

from __future__ import annotations

import re

from undersong.datafiles.verdict_config import calls_config, ledger_config, pattern
from undersong.models.verdict import LedgerKind
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.deeds import deed_calls, deed_of
from undersong.verdict.transcript import Transcript, TranscriptTurn

_HOW_DONE = re.compile(r"[ ](?:inline|via|by|in|with|through|at|on|per|when|for|as|\w+ly)\b", re.IGNORECASE)
_CHECKED: dict[str, LedgerKind] = {"tests": "tests", "build": "build", "lint": "lint", "types": "lint"}
_PLAIN: dict[str, LedgerKind] = {
    "fix": "fixed", "works": "fixed", "done": "done", "verified": "verified", "read": "read", "tests": "tests",
}  # fmt: skip


def kind_in_session(transcript: Transcript, turn: TranscriptTurn, claim: Claim) -> LedgerKind | None:
    """The kind of a claim in its session: how things stand ("it is on origin") is one where a command should do it."""
    kind = ledger_kind(claim, turn.prose)
    if not claim.passive or claim.kind not in ("act", "verified") or claim.word == "merged":
        return kind
    name = deed_of(turn, claim)
    own = (call for call in deed_calls(transcript, turn, name)) if name else iter(())
    return calls_config().deeds[name].kind if any(own) else None


def ledger_kind(claim: Claim, text: str) -> LedgerKind | None:
    """The kind under which the ledger lists a claim; None where it says how things are, and not what was done."""
    words, config = text[claim.start : claim.end], ledger_config()
    if claim.word == "merged" and pattern((config.branches,)).search(text[slice(*sentence(text, *claim[:2]))]):
        return None if claim.passive else "pushed"
    if claim.checks:
        return "tests" if len(claim.checks) > 1 else _CHECKED[claim.checks[0]]
    if claim.kind == "works" and not pattern((config.changed_words,)).search(words):
        return None
    if claim.kind == "done" and _HOW_DONE.match(text, claim.end):
        return None
    if claim.kind != "act":
        return _PLAIN[claim.kind]
    if claim.passive or _tells_what_to_do(words) or _is_heading(text, claim):
        return None
    return config.words.get(claim.word) or next((config.acts[act] for act in claim.acts if act in config.acts), None)


def _tells_what_to_do(words: str) -> bool:
    """Whether the words of a claim are an order or an intention: "run", "now run"."""
    *before, verb = re.findall(r"[\w']+", words.lower()) or [""]
    return verb in ledger_config().imperatives and ledger_config().leads.issuperset(before)


def _is_heading(text: str, claim: Claim) -> bool:
    words = text[slice(*sentence(text, claim.start, claim.end))].strip()
    return words.startswith("#") or words.endswith((":**", "**:", "**"))
