"""What was not looked at, in one line, with the command that looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from undersong.core.text import counted
from undersong.models import Case, by_pattern
from undersong.patterns.nomination import LEAST, UNREAD_SEQUENCES
from undersong.report.claims_view import is_work, unread_sessions, unread_words, work_words
from undersong.report.commands import asking_command
from undersong.report.opening_title import is_read
from undersong.report.sequence_words import any_sequence_read, looked_for_words, sequence_gaps, whole_readings

BEST_KNOWN = {  # patterns by which people know what is not looked for
    "love_bombing": "love bombing",
    "con_game": "a con",
    "gaslighting_sequence": "gaslighting",
    "classic_con_sequence": "a con in five steps",
    "dependency_loop": "a dependency loop",
    "self_exfiltration": "self-exfiltration",
}
HERE = "That needs a key and sends messages to a provider. A model on this machine (Ollama, llama.cpp) sends nothing:"
LOCAL = "ollama:MODEL"
A_JUDGE_ADDS = (
    "patterns between people or agents, which an LLM judge would add (`--read sequences --judge NAME`); claims and "
    "checks need none"
)


class Coverage(msgspec.Struct, frozen=True):
    """``looked`` and ``missing`` are sentences; ``command``, where there is one, looks at the rest.

    ``here`` says that a model on this machine can do so, ``here_command`` how.
    """

    looked: str
    missing: str
    command: str = ""
    here: str = ""
    here_command: str = ""


def coverage_of(case: Case, paths: Sequence[str] = (), more: str = "") -> Coverage:
    """What was looked at and what was not.

    ``paths`` are those of the command, by default the names of the inputs; ``more`` are options of it that say where
    things go, for the command that looks at the rest.
    """
    if is_work(case) and not is_read(case):
        return _of_work(case)
    patterns = by_pattern(case.outcomes)
    not_run = [each.pattern for each in patterns if each.status == "not_applicable"]
    idle = 0 if any_sequence_read(case) else len(not_run)
    gaps = list(_gaps(case))
    if gave_up := [each.pattern for each in patterns if each.status == "gave_up"]:
        gaps.insert(0, f"the search for {', '.join(gave_up)} gave up at its limit")
    estimate = case.parameters.get("llm_estimate")
    looked = f"Looked at {_what(case)}."
    if idle and estimate:
        price = f"{_usd(_cheapest(estimate)['usd'])} here ({_basis(estimate)})"
        need = f"{_such_as(not_run)} need an LLM judge, which would cost {price}"
        gaps.insert(0, f"{idle:,} of {counted(len(patterns), 'pattern')} of manipulation{need}")
        read = _cheapest(estimate)["read"]
        asked, local = (asking_command(case, paths, read, judge, more) for judge in (estimate["judge"], LOCAL))
        return Coverage(looked, f"Not looked for: {'; '.join(gaps)}.", asked, HERE, local)
    if idle:
        why = "before a sequence is read" if case.sequences else "with this judge"
        gaps.insert(0, f"{idle:,} of {counted(len(patterns), 'pattern')} could not be looked for {why}")
    if not gaps:
        return Coverage(looked, "Nothing was left out.")
    return Coverage(looked, f"Not looked at: {'; '.join(gaps)}.")


def _of_work(case: Case) -> Coverage:
    """What was looked at of coding sessions, whose claims and checks no judge has to read."""
    gaps = [f"the search for {each.pattern} gave up at its limit" for each in by_pattern(case.outcomes)
            if each.status == "gave_up"]  # fmt: skip
    gaps += _unreadable(case)
    return Coverage(f"Looked at {_what(case)}.", f"Not looked for: {'; '.join([*gaps, A_JUDGE_ADDS])}.")


def _basis(estimate: Mapping[str, Any]) -> str:
    """``to read 12 sequences, at prices of 2026-10-01; with --read both also 852 messages, about $16.60``."""
    cheapest = _cheapest(estimate)
    counts = [counted(cheapest[f"{noun}s"], noun) for noun in ("sequence", "message") if f"{noun}s" in cheapest]
    read = f"to read {' and '.join(counts)}, " if counts else ""
    basis = f"{read}at prices of {estimate['prices_as_of']}"
    if cheapest["read"] == estimate["read"]:
        return basis
    beside = counted(estimate["messages"], "message")
    return f"{basis}; --read {estimate['read']} scores {beside}, too, {_usd(estimate['usd'])} in all"


def _cheapest(estimate: Mapping[str, Any]) -> dict[str, Any]:
    """What looks for every pattern for least: sequences alone, where somebody says enough for one."""
    if "usd_sequences" not in estimate:
        return dict(estimate)
    less = {"read": "sequences", "usd": estimate["usd_sequences"]}
    return {name: value for name, value in estimate.items() if name != "messages"} | less


def _usd(cost: float) -> str:
    return f"about ${max(cost, 0.01):,.2f}"


def _such_as(not_run: Sequence[str]) -> str:
    """Two patterns that were really not looked for, the best known first."""
    names = [words for pattern, words in BEST_KNOWN.items() if pattern in not_run][:2]
    return f", such as {' or '.join(names)}," if names else ""


def _gaps(case: Case) -> Iterator[str]:
    if case.sequences:
        yield from _unread_sequences(case)
    yield from _not_compared(case)
    if case.sequences and case.parameters.get("read") == "sequences":
        yield from _unreadable(case)
        return
    for state, words in (("unread", "were not read by the judge"), ("refused", "were refused by the judge"),
                         ("failed", "got no usable answer")):  # fmt: skip
        if count := case.states.get(state, 0):
            yield f"{counted(count, 'message')} {words if count > 1 else words.replace('were', 'was')}"
    yield from _too_short(case)
    yield from _unreadable(case)


def _not_compared(case: Case) -> Iterator[str]:
    """Conversations that a judge of sequences would read side by side."""
    pairs = case.parameters.get("llm_estimate", {}).get("pairs", 0)
    if pairs:
        reason = "of one speaker with more and with less reason to think that it is watched"
        yield f"{counted(pairs, 'pair')} of conversations {reason}: not asked, since only an LLM judge compares them"


def _too_short(case: Case) -> Iterator[str]:
    """Speakers of whom counting says nothing, and what to do where one author goes by a name of each conversation."""
    at_work = {session.conversation for session in case.sessions if session.profile == "coding"}  # with its tools
    few = (agent.agent for agent in case.agents if agent.messages < LEAST)
    short = [name for name in few if name.rsplit("/", 1)[0] not in at_work]
    if not short or case.sequences or is_work(case):
        return
    several = len({name.rsplit("/", 1)[-1] for name in short}) < len(short) and all("/" in name for name in short)
    remedy = ' (if a name is one author everywhere, give it under the key "agent")' if several else ""
    words = f"{counted(len(short), 'speaker')} of fewer than {LEAST} messages{remedy}"
    yield f"nothing was counted of {words}"


def _unread_sequences(case: Case) -> Iterator[str]:
    """Speakers that no reading of a sequence is of, counted once in each conversation."""
    unread = case.parameters.get(UNREAD_SEQUENCES, {})
    if short := unread.get("short", 0):
        yield f"{counted(short, 'speaker')} of fewer than {LEAST} messages in a conversation"
    if others := unread.get("not_nominated", 0):
        yield f"{counted(others, 'speaker')} whose messages gave the least reason to be read as a sequence"
    yield from sequence_gaps(case)


def _unreadable(case: Case) -> Iterator[str]:
    if words := unread_words(unread_sessions(case)):
        yield words
    unreadable = sum(each.kind in ("file", "record") for each in case.problems)
    if unreadable:
        yield f"{counted(unreadable, 'file or record', 'files or records')} could not be read"


def _what(case: Case) -> str:
    home = "session" if is_work(case) else "conversation"
    parts = [f"{counted(case.messages, 'message')} in {counted(case.conversations, home)}"]
    if words := work_words(case):
        parts.append(f"what agents say of their work ({words})")
    if any_sequence_read(case):
        whole = whole_readings(case)
        speakers = {each.agent for each in whole}
        settled = speakers - {each.agent for each in whole if not each.is_settled}
        share = "" if settled == speakers else f"{len(settled):,} of "
        parts.append(f"what {share}{counted(len(speakers), 'speaker')} wrote, each as a whole, for every pattern")
        if settled == speakers:
            return "; ".join(parts)
    ran = any(each.status == "ran" for each in case.outcomes)
    if ran and (is_read(case) or not is_work(case)):
        parts.append(looked_for_words(case))
    return "; ".join(parts)
