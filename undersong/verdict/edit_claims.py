"""Claims about what was not changed, held against the edits: "I left the tests alone", "I only changed x.py"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from undersong.core.text import turn_at
from undersong.datafiles.stored import stored
from undersong.datafiles.verdict_config import bypass_config, edit_claims_config, ledger_config, pattern
from undersong.models.verdict import EDITED
from undersong.verdict.bypass_context import diff_lines
from undersong.verdict.check_claims import Ruling
from undersong.verdict.claims import clause_before, sentences
from undersong.verdict.named_files import may_touch_any
from undersong.verdict.required_words import ExpressionFilter, Needs, required_words
from undersong.verdict.signatures import changed_signature
from undersong.verdict.touched_files import TouchedFile, is_same_file, takes_back, touched_files, within_project
from undersong.verdict.transcript import Transcript, TranscriptTurn

FILE, API, TESTS = "file", "api", "tests"
LINES = 4  # lines of an edit that a reason quotes
RUNS_BACK = 3  # requests back in which the edits may be that a claim speaks of
_MARKS = "`*_'\"([{"
_FOLDER = r"(?:[\w@.-]+/)+(?![\w.])"
_NAME = rf"(?:(?:Makefile|Dockerfile|Jenkinsfile)\b|{_FOLDER})"
_LIKELY = re.compile(
    r"\b(?:touch|chang|modif|edit|alter|un(?:touch|chang|modif|alter)|intact|alone|same|only|nothing|other|rewr|adjust"
    r"|tweak|amend|confined|limited|restricted|contained|isolated)|as[ -](?:is|it|they|before)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"^[^\w\n]*(?:if|unless|when|once|should|whether)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"\b(?<!all )(?<!each )(?<!most )(?:of|in|for|from|by|with|to|on|under|about|than|between)[ ]"
    r"(?:(?:the|all|any|these|those|our|your|my|its|existing)[ ])*[`*_'\"]*$",
    re.IGNORECASE,
)
_WITHOUT = re.compile(r"without\b", re.IGNORECASE)
WORDS = "WORDS"  # stands for those of a group
_BESIDE = rf"\b(?:and|plus|with)[ ](?:\w+[ ]){{0,2}}(?:{WORDS})\b"
_AGENT = re.compile(r"\b(?:I|we)\b|\b(?:left|kept|without)\b", re.IGNORECASE)
_CHECKS = re.compile(r"^git[ ]+(?:(?:-\S+[ ]+)*)(?:status|diff)\b")

ClaimForm = Literal["untouched", "only", "nothing_else"]


class EditClaim(NamedTuple):
    """Words at ``start:end`` of a message that say that files were not changed; ``names`` are the files they name.

    ``group`` is that of the files, ``file`` for those that are named, "" where all but the named ones are meant.
    ``first`` and ``last`` are the bounds of the sentence; ``sort`` says what sort of file it counts.
    """

    start: int
    end: int
    form: ClaimForm
    first: int
    last: int
    group: str = ""
    names: tuple[str, ...] = ()
    sort: str = ""


def edit_claims(turn: TranscriptTurn) -> Iterator[EditClaim]:
    """The claims of a message about what was not changed, each group of files once a sentence."""
    for first, last in sentences(turn.prose) if turn.is_agent else ():
        words = turn.prose[first:last]
        if words.rstrip().endswith("?") or not _LIKELY.search(words) or _CONDITION.match(words):
            continue
        seen = set[tuple[str, tuple[str, ...]]]()
        for claim in _in_sentence(turn.prose, first, last):
            key = (claim.group, claim.names if claim.group == FILE else ())
            if key not in seen:
                seen.add(key)
                yield claim


def _in_sentence(text: str, first: int, last: int) -> Iterator[EditClaim]:
    words = text[first:last]
    for place in _filter().possible(words):
        form, expression = _expressions()[place]
        for match in _shape(expression).finditer(words):
            if not _is_claimed(words, match):
                continue
            bounds = (first + match.start(), first + match.end())
            group = _group(match) if form == "untouched" else ""
            names = _names(match["group"]) if group == FILE else _names(words)
            yield EditClaim(*bounds, form, first, last, group, names, (match.groupdict().get("kind") or "").strip())


def _is_claimed(words: str, match: re.Match[str]) -> bool:
    """Whether words are no plan, condition or quotation, and speak of what is over."""
    config = edit_claims_config()
    before = words if _WITHOUT.match(match[0]) else clause_before(words, 0, match.start())
    if pattern((config.unsaid,)).search(before) or pattern((config.unsaid_after,)).search(words[match.end() :]):
        return False
    if "group" in match.groupdict() and _OF_OTHERS.search(words[: match.start("group")]) and _begins(match):
        return False
    return not any(words[: match.start()].count(mark) % 2 for mark in ('"', "`"))


def _begins(match: re.Match[str]) -> bool:
    """Whether a form begins with what was not changed, so that words before it can make it a part of something else."""
    before = match[0][: match.start("group") - match.start()]
    return re.fullmatch(edit_claims_config().before, before, re.IGNORECASE) is not None


def rule_on_edits(transcript: Transcript, turn: TranscriptTurn, claim: EditClaim) -> Ruling | None:
    """The ruling by the edits on the request of a claim, or the last ones before; None where nothing can be said."""
    config, touched = edit_claims_config(), list[TouchedFile]()
    words = turn.prose[claim.first : claim.last]
    if claim.form != "untouched" and claim.sort.lower() not in config.kinds:
        return None
    excepted = claim.group and pattern((config.excepted,)).search(words)
    if excepted and not _names(words):
        return None
    for run in range(turn.run, max(turn.run - RUNS_BACK, 0), -1):
        touched = touched_files(transcript, run, turn.place)
        if touched:
            break
    if not touched and not _AGENT.search(turn.prose, claim.start, claim.end):
        return None
    paths = _project_paths(transcript, touched)
    meant = _meant(turn, claim, touched, paths, excepted=bool(excepted))
    if meant is None:
        return None
    if against := _against(claim, meant, touched, paths):
        return Ruling("contradicted", f"{EDITED}{against}")
    if claim.group != API and any(map(_adds, meant)) and not pattern((config.existing,)).search(words):
        return Ruling("unsupported", "something was added there, and nothing that was there was changed")
    if _is_unseen(transcript, turn, touched):
        return Ruling("unsupported", "a call may have changed files that the log does not name")
    return Ruling("backed", "no edit on this request that stands says otherwise")


def _meant(
    turn: TranscriptTurn, claim: EditClaim, touched: Sequence[TouchedFile], paths: Sequence[str], *, excepted: bool
) -> list[TouchedFile] | None:
    """The changed files that a claim says were not changed; None where it does not say which."""
    config, whole = edit_claims_config(), turn.message.text
    named = [item for item in touched if _is_named(item.path, _names(whole))]
    if claim.group == FILE:
        return [item for item in touched if _is_named(item.path, claim.names)]
    if claim.group == API:
        return [item for item in touched if not _is_of("tests", within_project(paths, item.path))]
    if claim.group:
        own = [item for item in touched if _is_of(claim.group, within_project(paths, item.path))]
        other = pattern((config.other,)).search(whole, claim.start, claim.end)
        return [item for item in own if item not in named] if excepted or other else own
    if not _names(whole):
        return None
    ignored = config.kinds[claim.sort.lower()]
    if claim.form == "nothing_else":
        ignored = (*ignored, *_groups_in(whole, rf"\b(?:{WORDS})\b"))
        named += [item for item in touched if _stem(item.path) in whole.lower()]
    else:
        ignored = (*ignored, *_groups_in(turn.prose[claim.end : claim.last], _BESIDE))
    others = [item for item in touched if item not in named and not item.created]
    return [item for item in others if not any(_is_of(group, within_project(paths, item.path)) for group in ignored)]


def _groups_in(text: str, shape: str) -> list[str]:
    """The groups of files that a text names in a form."""
    groups = edit_claims_config().groups
    return [name for name, entry in groups.items() if pattern((shape.replace(WORDS, entry.words),)).search(text)]


def _against(
    claim: EditClaim, meant: Sequence[TouchedFile], touched: Sequence[TouchedFile], paths: Sequence[str]
) -> str:
    """The first change that speaks against a claim, in words; "" without one."""
    if claim.group == API:
        edits = [item.edit for item in touched if item.edit]
        for item in meant:
            if item.edit and not item.created and (line := changed_signature(item.edit, edits)):
                return f"`{line}` of {within_project(paths, item.path)} was changed or taken away{_at(item)}"
        return ""
    changed = [item for item in meant if not item.created and not (claim.group == TESTS and _adds(item))]
    if not changed:
        return ""
    item = changed[0]
    lines = " | ".join(" ".join(line.split()) for line in diff_lines(item.edit)[:LINES]) if item.edit else ""
    deleted = item.edit is not None and item.edit.deleted
    what = f"{within_project(paths, item.path)} was {'deleted' if deleted else 'changed'}"
    return f"{what}{_at(item)}{f': {lines}' if lines else ''}"


def _at(item: TouchedFile) -> str:
    return f" at {turn_at(item.turn.message.position)}"


def _adds(item: TouchedFile) -> bool:
    """Whether a change adds to a file and leaves what was there: a new file, or new tests beside the others."""
    if item.created or item.edit is None or not item.only_adds:
        return item.created
    tests = re.compile(bypass_config().definitions, re.MULTILINE)
    return len(tests.findall(item.edit.new)) > len(tests.findall(item.edit.old or ""))


def _is_unseen(transcript: Transcript, turn: TranscriptTurn, touched: Sequence[TouchedFile]) -> bool:
    """Whether a call may have changed files that it does not name, and nothing listed the changes behind it."""
    run = touched[0].turn.run if touched else turn.run
    unseen = False
    for placed in transcript.outcomes_before(turn.place, run):
        if _CHECKS.match(placed.outcome.command) and placed.outcome.state != "failed":
            unseen = False
        elif takes_back(placed.outcome.command):
            continue
        elif placed.outcome.state != "failed" and may_touch_any(placed.outcome):
            unseen = True
    return unseen


def _project_paths(transcript: Transcript, touched: Sequence[TouchedFile]) -> list[str]:
    own = [placed.outcome.path for placed in transcript.outcomes if placed.outcome.path.startswith("/")]
    return [*own, *(item.path for item in touched)]


def _is_of(group: str, path: str) -> bool:
    shape = edit_claims_config().groups[group].paths
    return bool(shape) and re.search(shape, path) is not None


def _is_named(path: str, names: Sequence[str]) -> bool:
    """Whether a file is among those that are named, by its name or by a folder above it."""
    return any(
        f"/{name.strip('/')}/" in f"/{path}" if name.endswith("/") else is_same_file(path.lower(), name.lower())
        for name in names
    )


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(".")[0].lower() or path


def _names(text: str) -> tuple[str, ...]:
    """The files and folders that a text names."""
    return tuple(dict.fromkeys(match[0].strip(_MARKS) for match in _name_shape().finditer(text)))


def _group(match: re.Match[str]) -> str:
    """The group that words name, or ``file``."""
    for name, entry in edit_claims_config().groups.items():
        if pattern((entry.words,)).fullmatch(match["group"]):
            return name
    return FILE


@cache
def _name_shape() -> re.Pattern[str]:
    return re.compile(f"{ledger_config().files}|{_NAME}", re.IGNORECASE)


@cache
def _expressions() -> tuple[tuple[ClaimForm, str], ...]:
    config = edit_claims_config()
    file = rf"[`*_'\"]*(?:{ledger_config().files}|{_NAME})[`*_'\"]*"
    groups = "|".join(entry.words for entry in config.groups.values())
    slots = {
        "{group}": rf"{config.before}(?P<group>{groups}\b|{file})",
        "{tests}": rf"{config.before}(?P<group>{config.groups[TESTS].words})",
        "{files}": rf"(?P<files>{file})",
        "{change}": config.change,
        "{touch}": config.touch,
    }
    result = list[tuple[ClaimForm, str]]()
    forms: tuple[tuple[ClaimForm, tuple[str, ...]], ...] = (
        ("untouched", config.untouched), ("only", config.only), ("nothing_else", config.nothing_else),
    )  # fmt: skip
    for form, shapes in forms:
        for shape in shapes:
            for slot, filling in slots.items():
                shape = shape.replace(slot, filling)
            result.append((form, shape))
    return tuple(result)


@cache  # of dozens, a conversation needs a few
def _shape(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


@cache
def _filter() -> ExpressionFilter:
    """Which of the expressions may match in a sentence: it has the words that they need."""
    expressions = [expression for _, expression in _expressions()]
    needs = stored("edit-words", repr(expressions).encode(), tuple[Needs, ...], lambda: _needs(expressions))
    return ExpressionFilter(needs)


def _needs(expressions: Sequence[str]) -> tuple[Needs, ...]:
    return tuple(map(required_words, expressions))
