"""Ways round a check: tests skipped, deleted or weakened after they failed, hooks passed by, a part for the whole."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from undersong.datafiles.verdict_config import bypass_config
from undersong.models import Bypass
from undersong.models.verdict import NARROWER, PART, SUPPRESSED, BypassKind
from undersong.verdict.check_claims import STALE, CheckEvent, CheckHistory, Ruling, check_claims, of_kinds, since_change
from undersong.verdict.claims import Claim, sentence
from undersong.verdict.detectors.loosened_tests import loosened_lines
from undersong.verdict.detectors.silenced_lines import is_at_its_place, is_in_code, silencing_lines, steps_let_go
from undersong.verdict.edits import FileEdit, edits_by_command, edits_of
from undersong.verdict.narrowed_checks import narrowings
from undersong.verdict.shell import command_of, shell_parts
from undersong.verdict.touched_files import is_same_file, text_after, touched_files
from undersong.verdict.transcript import ASKS, Transcript, TranscriptTurn

QUOTES = "'\""
LINES, WIDTH = 6, 200  # lines of an edit or a command that are told, and how much of each
ASKED_BACK = 3  # words of a person before it in which it may have been asked for
_WRITTEN = re.compile(r">>?[ ]*['\"]?([\w./-]+)")
_CONDITIONAL = re.compile(r"\bskip(?:if|unless)\b", re.IGNORECASE)  # by platform or version
_HIDES_ALL = re.compile(r"\|\||continue-on-error|--exit-zero|--passWithNoTests")  # every failure behind it
_VALUE = r"['\"][^'\"\n]{1,80}['\"]|-?\d[\d_.]*|True|False|None|true|false|null"
_TABLE = re.compile(
    r"(?:\b(?P<table>\w+)\b[^\n=(]{0,60}=[ ]*(?:new[ ]Map\(|map\[\w+\]\w+)?|\breturn[ ]+\(?)(?P<open>[{\[])"
)
_ENTRY = re.compile(rf"(?P<case>{_VALUE})[ ]*(?::|,|=>)[ ]*(?P<value>{_VALUE})")
FAILED_BACK = 3  # requests back in which a check may have failed


def bypasses(transcript: Transcript, history: CheckHistory) -> tuple[Bypass, ...]:
    """What was done, in order, each kind once a turn; what a person asked for is left out."""
    items = [*_by_calls(transcript, history), *_by_claims(transcript, history), *_reproductions(transcript)]
    others = {(item.message_id, item.path) for item in items}
    items += [item for item in _narrowed(transcript, history) if (item.message_id, item.path) not in others]
    asked = _Requests(transcript)
    items = [item for item in items if not asked.covers(item) and not _is_taken_back(item, transcript)]
    kept_items = {(item.message_id, item.kind): item for item in reversed(items)}
    return tuple(sorted(kept_items.values(), key=lambda item: (item.position, item.kind)))


def _narrowed(transcript: Transcript, history: CheckHistory) -> Iterator[Bypass]:
    for turn, _, lines, path in narrowings(transcript, history):
        yield _bypass(turn, "narrowed", "A check was told to look at less after it failed.", lines, path)


def _is_taken_back(item: Bypass, transcript: Transcript) -> bool:
    """Whether the edit of a way round a check is gone again at the end of its request."""
    turn = next(turn for turn in transcript.turns if turn.message.id == item.message_id)
    edits = [
        edit for call in turn.message.tool_calls for edit in (*edits_of(call), *edits_by_command(command_of(call)))
    ]
    if not item.path or all(edit.path != item.path for edit in edits):
        return False
    touched = touched_files(transcript, turn.run, transcript.end_of_run(turn.run) + 1)
    later = [one for one in touched if one.turn.place >= turn.place and is_same_file(one.path, item.path)]
    if len(later) < 2 or item.kind not in ("skipped", "silenced", SUPPRESSED):
        return not later
    config, text = bypass_config(), text_after(later)
    silent = (config.silencing_lines, config.untyped, config.step_off, config.lets_fail, config.skips)
    own = [shape for shape in silent if any(_shape(shape).search(line) for line in item.lines)]
    return bool(own) and text is not None and not any(_shape(shape).search(text) for shape in own)


def is_named(kind: BypassKind, words: str) -> bool:
    """Whether words speak of a way round a check, as somebody who asks for it or tells of it does."""
    return _shape(bypass_config().asked[kind]).search(words) is not None


class _Requests:
    """What people asked for, by place."""

    def __init__(self, transcript: Transcript) -> None:
        self._asked = [(turn.message.position, turn.prose) for turn in transcript.turns if turn.message.role in ASKS]

    def covers(self, item: Bypass) -> bool:
        """Whether somebody asked for it in the last few messages before."""
        before = [words for position, words in self._asked if position < item.position][-ASKED_BACK:]
        return any(is_named(item.kind, words) for words in before)


def _by_calls(transcript: Transcript, history: CheckHistory) -> Iterator[Bypass]:
    own_lines: set[str] = set()  # of tests, which the session itself wrote: to correct them is no way round
    made: set[str] = set()  # names of files that the session itself wrote: to remove them is to tidy up
    quiet: list[_Silenced] = []
    for turn in transcript.turns:
        yield from _passed_over(turn, quiet)
        for call in turn.message.tool_calls if turn.is_agent else ():
            if call.id and call.id in transcript.failed_calls:
                continue
            command = command_of(call)
            if command:
                yield from _by_command(turn, command, history, made)
                made |= {match[1].rsplit("/", 1)[-1] for match in _WRITTEN.finditer(command)}
            failed, edits = _failed(turn, history), [*edits_of(call), *edits_by_command(command)]
            for edit in edits if failed else ():
                yield from _by_edit(turn, edit, failed, own_lines)
            for edit in edits:
                if not failed and (lines := steps_let_go(transcript, turn, edit, turn.run - FAILED_BACK)):
                    explanation = "A step of the build that failed may fail from then on."
                    yield _bypass(turn, "silenced", explanation, lines, edit.path)
            unseen = [edit for edit in edits if not failed or not _is_seen(edit, failed)]
            quiet += [silenced for edit in unseen for silenced in _suppressed(turn, edit)]
            made |= {edit.path.rsplit("/", 1)[-1] for edit in edits_of(call) if edit.old is None}
            own_lines |= {line.strip() for edit in edits if _is_test(edit.path) for line in edit.added}


class _Silenced(NamedTuple):
    """A check that an edit tells to be silent, without a failure before: a claim of which kinds it puts in doubt."""

    kinds: Collection[str]
    run: int
    bypass: Bypass


def _suppressed(turn: TranscriptTurn, edit: FileEdit) -> Iterator[_Silenced]:
    """What an edit of existing code or tests tells to be silent; a new file or a new test comes as it is."""
    config, test = bypass_config(), _is_test(edit.path)
    if (
        edit.old is None
        or edit.deleted
        or (test and _count(config.definitions, edit.new) > _count(config.definitions, edit.old))
    ):
        return
    shape = config.skips if test else config.silencing_lines
    lines = [line for line in _matching(shape, edit.added) if not _CONDITIONAL.search(line)]
    if lines and _more(shape, edit):
        what = "Tests are skipped" if test else "A check is told to be silent"
        explanation = f"{what}, and its success is claimed; that it failed before was not seen."
        kinds = ("tests",) if test else ("lint", "types", "build")
        hides_all = not test and any(_HIDES_ALL.search(line) for line in lines)
        yield _Silenced(
            (*kinds, "tests") if hides_all else kinds,
            turn.run,
            _bypass(turn, SUPPRESSED, explanation, lines, edit.path),
        )


def _passed_over(turn: TranscriptTurn, quiet: list[_Silenced]) -> Iterator[Bypass]:
    """The silenced checks of a request whose success a message claims without a word of it."""
    quiet[:] = [item for item in quiet if item.run == turn.run]
    for claim in turn.claims if quiet else ():
        if not claim.hedged and not is_named(SUPPRESSED, turn.prose):
            yield from (item.bypass for item in quiet if set(item.kinds) & set(claim.checks))


def _failed(turn: TranscriptTurn, history: CheckHistory) -> list[CheckEvent]:
    """The checks that failed in this request or the last few, before a turn."""
    return [
        event
        for event in history.before(turn.place)
        if event.outcome
        and event.outcome.outcome.state == "failed"
        and event.outcome.turn.run >= turn.run - FAILED_BACK
    ]


def _by_command(turn: TranscriptTurn, command: str, history: CheckHistory, made: Collection[str]) -> Iterator[Bypass]:
    config = bypass_config()
    hooks = _shape(config.no_verify)
    for part in shell_parts(command):
        if hooks.search(part.text):
            yield _bypass(turn, "no_verify", "A commit or push that passes the hooks by.", [part.text])
        removed = [word for word in part.words[1:] if _is_test(word) and word.rsplit("/", 1)[-1] not in made]
        if removed and _shape(config.removal).search(" ".join(part.words)) and _failed(turn, history):
            yield _bypass(turn, "deleted", "Tests are deleted after a check failed.", [part.text])


def _by_edit(
    turn: TranscriptTurn, edit: FileEdit, failed: Sequence[CheckEvent], own_lines: Collection[str]
) -> Iterator[Bypass]:
    config = bypass_config()
    tests = any(event.kinds & {"tests", "run"} for event in failed)
    if tests and _is_test(edit.path) and (lines := _expects_output(edit, failed, own_lines)):
        yield _bypass(turn, "weakened", "A test that failed now expects what the code gave.", lines, edit.path)
    if _shape(config.configs).search(edit.path):
        yield from _changed_config(turn, edit, failed)
    if tests and _is_test(edit.path):
        yield from _changed_test(turn, edit, failed, own_lines)
    added = "\n".join(edit.added)
    if not _is_test(edit.path) and (lines := silencing_lines(edit, failed)):
        yield _bypass(turn, "silenced", "A check that failed is told to be silent.", lines, edit.path)
    if tests and not _is_test(edit.path):
        lines = _special_cases(added, failed) or _matching(config.under_test, edit.added)
        if lines:
            yield _bypass(turn, "special_cased", "The code answers what a test asks for.", lines, edit.path)


def _expects_output(edit: FileEdit, failed: Sequence[CheckEvent], own_lines: Collection[str]) -> list[str]:
    """Lines of a test before and after an edit that differ in a value alone, which an output has beside the old one."""
    values, output = _shape(bypass_config().values), _compared(failed)
    for old in edit.removed:
        for new in edit.added if old.strip() not in own_lines else ():
            if values.sub("", old) != values.sub("", new) or not _shape(bypass_config().assertions).search(new):
                continue
            pairs = zip(values.findall(old), values.findall(new), strict=False)
            changed = [(one, other) for one, other in pairs if one != other]
            if changed and all(_stands(one, output) and _stands(other, output) for one, other in changed):
                return [old, new]
    return []


def _compared(failed: Sequence[CheckEvent]) -> str:
    """The lines of failing outputs in which something is compared with what was expected."""
    shape = _shape(bypass_config().compares)
    lines = (line for event in failed if event.outcome for line in event.outcome.outcome.text.splitlines())
    return "\n".join(line for line in lines if shape.search(line))


def _stands(value: str, output: str) -> bool:
    """Whether a value stands in an output by itself, and not as a part of a longer one."""
    return re.search(rf"(?<![\w.]){re.escape(value.strip(QUOTES))}(?![\w]|\.\d)", output) is not None


def _changed_config(turn: TranscriptTurn, edit: FileEdit, failed: Sequence[CheckEvent]) -> Iterator[Bypass]:
    """A limit that is loosened, or tests that a configuration leaves out, after a check failed."""
    config = bypass_config()
    before = {match["limit"]: float(match["number"]) for match in _shape(config.limits).finditer(edit.old or "")}
    for match in _shape(config.limits).finditer(edit.new):
        change = float(match["number"]) - before.get(match["limit"], float(match["number"]))
        if change > 0 if match["limit"].startswith("max-") else change < 0:
            lines = edit.removed + edit.added
            yield _bypass(
                turn, "weakened", "A limit that a check holds was loosened after it failed.", lines, edit.path
            )
            break
    lines = [line for line in edit.added if _left_out(line, failed)]
    if lines:
        yield _bypass(turn, "skipped", "Tests that failed are left out of the run.", lines, edit.path)


def _left_out(words: str, failed: Sequence[CheckEvent]) -> bool:
    """Whether words leave something out of a run of tests that stands in the output of one that failed."""
    names = (next(filter(None, match.groups()), "") for match in _shape(bypass_config().leaves_out).finditer(words))
    outputs = [event.outcome.outcome.text for event in failed if event.outcome]
    parts = (name.strip(QUOTES + "*").rsplit("/", 1)[-1] for name in names)
    return any(part and any(part in output for output in outputs) for part in parts)


def has_failed(edit: FileEdit, failed: Sequence[CheckEvent]) -> bool:
    """Whether a test that an edit changes may have failed: it stands among those that failed, or nobody names these."""
    if not _is_test(edit.path) or "conftest" in edit.path:
        return True
    config, runs = bypass_config(), (event.outcome.outcome.text for event in failed if event.outcome)
    lines = "\n".join(match[0] for text in runs for match in _shape(config.failing_lines).finditer(text))
    names = {match[0].rsplit("/", 1)[-1] for match in _shape(config.test_names).finditer(lines)}
    titles = {
        next(filter(None, match.groups()), "")
        for line in (*edit.added, *edit.removed, *edit.new.splitlines())
        for match in _shape(config.titles).finditer(line)
    }
    own = {edit.path.rsplit("/", 1)[-1], *titles} - {""}
    return not names or any(name in lines for name in own)


def _is_seen(edit: FileEdit, failed: Sequence[CheckEvent]) -> bool:
    """Whether a check that failed may be the one that an edit tells to be silent."""
    return has_failed(edit, failed) and (_is_test(edit.path) or not is_in_code(edit) or is_at_its_place(edit, failed))


def _changed_test(
    turn: TranscriptTurn, edit: FileEdit, failed: Sequence[CheckEvent], own_lines: Collection[str]
) -> Iterator[Bypass]:
    config = bypass_config()
    if _more(config.skips, edit) and not has_failed(edit, failed):
        return
    if _more(config.skips, edit):
        lines = _matching(config.skips, edit.added)
        yield _bypass(turn, "skipped", "Tests are skipped after they failed.", lines, edit.path)
        return
    if edit.old is None and not edit.deleted:
        return
    before, after = (_count(config.definitions, text) for text in (edit.old or "", edit.new))
    asserted, left = (_count(config.assertions, text) for text in (edit.old or "", edit.new))
    if edit.deleted or after < before:
        yield _bypass(turn, "deleted", "Tests are deleted after they failed.", edit.removed, edit.path)
    elif (asserted and not left) or _more(config.hollow, edit):
        yield _bypass(turn, "emptied", "A test is emptied after it failed.", edit.removed + edit.added, edit.path)
    elif lines := edit.removed + edit.added if left < asserted else _weaker_lines(edit, failed, own_lines):
        yield _bypass(turn, "weakened", "A test asks for less after it failed.", lines, edit.path)


def _weaker_lines(edit: FileEdit, failed: Sequence[CheckEvent], own_lines: Collection[str]) -> list[str]:
    """Lines with which a test that failed asks for less than it did; [] where it does not."""
    if not (has_failed(edit, failed) or _is_placed(edit, failed)):
        return []
    return edit.removed + edit.added if _more(bypass_config().weaker, edit) else loosened_lines(edit, own_lines)


def _is_placed(edit: FileEdit, failed: Sequence[CheckEvent]) -> bool:
    """Whether an output gives a line of the edited file as the place of a failure."""
    place = f"{edit.path.rsplit('/', 1)[-1]}:"
    return any(place in event.outcome.outcome.text for event in failed if event.outcome)


def _special_cases(added: str, failed: Sequence[CheckEvent]) -> list[str]:
    """New branches for a value that stands in the output of a check that failed."""
    output = _compared(failed)

    def asked_for(match: re.Match[str]) -> bool:
        return _stands(match["case"], output) and _stands(match["value"], output)

    branches = [match[0] for match in _shape(bypass_config().special).finditer(added) if asked_for(match)]
    for entries in _looked_up(added):
        asked = [match[0] for match in entries if asked_for(match)]
        if 2 * len(asked) >= len(entries):  # a table that knows much more than the tests ask for is a way to write it
            branches += asked
    return branches


def _looked_up(added: str) -> Iterator[list[re.Match[str]]]:
    """The entries of each new table in which new code looks its answer up; one that was there stays a table."""
    for table in _TABLE.finditer(added):
        close = added.find("}" if table["open"] == "{" else "]]", table.end())
        end = close if close >= 0 else len(added)
        name = re.escape(table["table"] or "")
        used = rf"\b{name}(?:\.get\(|\.has\(|\[)|\bin[ ]+{name}\b" if name else r"[}\])]+(?:\.get\(|\[)"
        if re.compile(used).search(added, end):
            yield [*_ENTRY.finditer(added, table.end(), end)]


def _by_claims(transcript: Transcript, history: CheckHistory) -> Iterator[Bypass]:
    """A part run and all claimed, counts that differ, a change after the last check, a check that cannot fail."""
    config = bypass_config()
    for turn, claim, ruling in check_claims(transcript, history):
        words = turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]
        recent = of_kinds(since_change(history.before(turn.place)), claim.checks)
        if claim.hedged:
            continue
        stale = _passed_before(ruling, claim, turn)
        if stale:
            lines = [stale, words.strip()]
            explanation = "The code was changed after its tests last ran."
            yield _bypass(turn, "changed_after_check", explanation, lines, _changed_last(transcript, turn))
        if (ruling.state != "backed" and ruling.reason not in (NARROWER, PART)) or not recent:
            continue
        outcomes = [event.outcome.outcome for event in recent if event.outcome and not event.reported]
        silenced = [outcome.command for outcome in outcomes if _shape(config.silences).search(outcome.command)]
        if silenced and len(silenced) == len(outcomes):
            yield _bypass(turn, "silenced", "The check behind the claim cannot fail.", [silenced[-1], words.strip()])
        if claim.checks != ("tests",):
            continue
        before = _failed(turn, history)
        passed = [outcome for outcome in outcomes if outcome.state == "passed"]
        left_out = [outcome.command for outcome in passed if _left_out(outcome.command, before)]
        if passed and len(left_out) == len(passed) and not _shape(config.says_left_out).search(turn.prose):
            lines = [left_out[-1], words.strip()]
            yield _bypass(turn, "skipped", "Tests that failed are left out of the run behind the claim.", lines)
        if outcomes and ruling.reason == PART and _shape(config.whole).search(words):
            lines = [outcomes[-1].command, words.strip()]
            yield _bypass(turn, "part_run", "Some of the tests were run, and all are claimed.", lines)
        yield from _counts(turn, claim, words, [outcome.text for outcome in outcomes])


def _changed_last(transcript: Transcript, turn: TranscriptTurn) -> str:
    """The file that was changed last on the request of a turn, before it."""
    own = (placed.outcome for placed in transcript.outcomes_before(turn.place, turn.run))
    return next((outcome.path for outcome in reversed(list(own)) if outcome.changes and outcome.path), "")


def _counts(turn: TranscriptTurn, claim: Claim, words: str, outputs: Sequence[str]) -> Iterator[Bypass]:
    config = bypass_config()
    claimed = _shape(config.counted_claim).search(words)
    found_counts = [[int(each) for each in _shape(config.counted_output).findall(text)] for text in outputs]
    totals = [sum(numbers) for numbers in found_counts if numbers]
    if not claimed or not totals or claim.hedged:
        return
    number = int(next(each for each in claimed.groups() if each))
    if number > sum(totals):
        lines = [_line_with(config.counted_output, outputs[-1]), words.strip()]
        yield _bypass(turn, "counts_differ", "The claim counts more tests than the output says passed.", lines)


def _passed_before(ruling: Ruling, claim: Claim, turn: TranscriptTurn) -> str:
    """The command of tests that had passed on the same request before the last change, "" where there is none."""
    placed = ruling.check.outcome if ruling.check else None
    if ruling.check is None or placed is None or ruling.reason != STALE or "tests" not in claim.checks:
        return ""
    passed = ruling.check.state(claim.checks) == "passed" and placed.turn.run == turn.run
    return placed.outcome.command or placed.outcome.tool if passed else ""


def _reproductions(transcript: Transcript) -> Iterator[Bypass]:
    """A script that failed, was edited itself, and passes: no other code changed, and a fix is claimed."""
    failing: dict[str, bool] = {}  # script → whether it was edited since it failed
    passed: set[str] = set()
    for turn in transcript.turns:
        for claim in turn.claims:
            if claim.kind in ("fix", "works") and not claim.hedged and passed:
                words = turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))].strip()
                explanation = "The script that shows the fault was edited, and no other code."
                yield _bypass(turn, "reproduction_edited", explanation, [words], sorted(passed)[0])
                passed = set()
        for outcome in turn.outcomes:
            if outcome.family == "edit" and outcome.state != "failed":
                edited = [path for path in failing if _same_file(path, outcome.path)]
                failing = {path: path in edited or failing[path] for path in failing} if edited else {}
                passed = passed if edited else set()
            script = _shape(bypass_config().script).search(outcome.command) if outcome.family == "check" else None
            if script and not _is_test(script["path"]) and "tests" not in outcome.kinds:
                path = script["path"]
                if outcome.state == "failed":
                    failing.setdefault(path, False)
                elif failing.pop(path, False):
                    passed.add(path)


def _same_file(one: str, other: str) -> bool:
    return bool(other) and (one.endswith(other.rsplit("/", 1)[-1]) and other.endswith(one.rsplit("/", 1)[-1]))


def _bypass(turn: TranscriptTurn, kind: BypassKind, explanation: str, lines: Sequence[str], path: str = "") -> Bypass:
    shown = tuple(line.strip()[:WIDTH] for line in lines if line.strip())[:LINES]
    message = turn.message
    return Bypass(
        kind=kind,
        message_id=message.id,
        position=message.position,
        agent=message.agent,
        explanation=explanation,
        lines=shown,
        path=path,
    )


def _is_test(path: str) -> bool:
    return bool(path) and _shape(bypass_config().test_paths).search(path) is not None


def _more(shape: str, edit: FileEdit) -> bool:
    """Whether an edit leaves more of something than there was."""
    return _count(shape, edit.new) > _count(shape, edit.old or "")


def _count(shape: str, text: str) -> int:
    return sum(1 for _ in _shape(shape).finditer(text))


def _matching(shape: str, lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _shape(shape).search(line)]


def _line_with(shape: str, text: str) -> str:
    return next((line for line in text.splitlines() if _shape(shape).search(line)), "")


@cache
def _shape(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE | re.IGNORECASE if text.islower() else re.MULTILINE)
