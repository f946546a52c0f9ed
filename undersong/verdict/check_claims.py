"""What was checked and what was changed in a session, in order, and the claims about checks that are held against it.

Of the claims: which stand, which nothing supports, which are wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from undersong.datafiles.verdict_config import bypass_config, claims_config, outcomes_config, pattern
from undersong.models.verdict import BROKEN, NARROWER, PART, ClaimState
from undersong.verdict.admissions import admits_check, counts_as_printed, failing_names, failure_told
from undersong.verdict.claims import Claim, claims_of_text, is_whole, sentence
from undersong.verdict.named_tools import lacking_tool
from undersong.verdict.projects import are_apart, named_roots, place_of, roots_of
from undersong.verdict.scratch_files import without_scratch_files
from undersong.verdict.shell import CheckKind, check_kind, commands, toolchains
from undersong.verdict.tool_outcomes import OutcomeState, ToolOutcome, outcome_pattern
from undersong.verdict.transcript import PlacedOutcome, Transcript, TranscriptTurn
from undersong.verdict.unnamed_failures import unnamed_failure

SILENT = frozenset({"build", "lint", "types"})  # checks that print nothing where all is well
NEVER = "nothing of the kind was run before it"
STALE = "nothing of the kind was run since the last change"
RED = "the last run of the kind failed, and it was not run since"
OTHER = "what was run is a check of another project than the claim or the change is about"
_REPORTED: tuple[CheckKind, ...] = ("tests", "build", "lint", "types")  # what a report may speak of
UNNAMED = "the message names some of the tests that failed in this run, and not this one"
UNSTARTED = "the check that it names could not start"
OTHER_TESTS = "the tests that were run are others than those that it names"
_EVERYTHING = "./..."  # how Go names all packages

_OPTION = re.compile(r"(?<!\S)--?([a-z][\w-]{3,})")
_IMAGES = re.compile(r"\b(?:docker|podman|images?|containers?)\b", re.IGNORECASE)
_BUILDS_IMAGE = re.compile(r"\b(?:docker|podman)\b.*\bbuild\b")
_WORDS = re.compile(r"[a-z][\w-]{3,}")


class CheckEvent(NamedTuple):
    """A check or a change at a place of the transcript; ``outcome`` None is a change.

    ``reported``: a subagent says so, and its calls are not in the session. ``changed``: the language of a changed file.
    ``shown``: a command that only looks printed a run that ends in a failure. ``folder``: where it was, "" if unknown.
    ``run`` counts the requests. ``remote``: a server for builds says so, of what was pushed. ``hook``: a hook of a
    commit failed, or a commit came right behind one that did.
    """

    place: int
    kinds: frozenset[CheckKind]
    outcome: PlacedOutcome | None = None
    reported: bool = False
    changed: frozenset[str] = frozenset()
    shown: bool = False
    folder: str = ""
    run: int = 0
    remote: bool = False
    hook: Literal["", "failed", "passed"] = ""

    def state(self, kinds: Iterable[CheckKind]) -> OutcomeState:
        """What it says of some kinds of check: that one failed, else that one passed."""
        if self.outcome is None:
            return "unknown"
        outcome, wanted = self.outcome.outcome, set(kinds)
        if self.reported:
            return "failed" if outcome.state == "failed" else "passed" if self.kinds & wanted else "unknown"
        if self.shown:
            return "failed"
        if outcome.failed_kinds & wanted:
            return "failed"
        return "passed" if outcome.passed_kinds & wanted else "unknown"

    @property
    def toolchains(self) -> frozenset[str]:
        """The languages of what was checked or changed, as far as a command, a compiler or a file's name says so."""
        if self.outcome is None or self.reported:
            return self.changed
        return _toolchains_of("" if self.shown else self.outcome.outcome.command, self.outcome.outcome.text)

    def may_be_of(self, languages: frozenset[str]) -> bool:
        """Whether it can speak of some languages: also where nobody says which it is of."""
        return not languages or not self.toolchains or bool(self.toolchains & languages)


@lru_cache(maxsize=1024)
def _toolchains_of(command: str, text: str) -> frozenset[str]:
    """The languages of a check, by its command and by the failures that it printed."""
    failures = (match[0] for match in outcome_pattern("failed_check").finditer(text))
    return toolchains("\n".join((command, *failures)))


class CheckHistory:
    """The checks and changes of a transcript in order."""

    def __init__(self, transcript: Transcript) -> None:
        self._every = list(_with_commits(without_scratch_files(transcript.outcomes)))
        self._events = [event for event in self._every if not event.remote]
        self._places = [event.place for event in self._events]
        self.unstarted = [placed for placed in transcript.outcomes if not placed.outcome.started]
        self.roots = roots_of(placed.outcome for placed in transcript.outcomes)

    def before(self, place: int, *, remote: bool = False) -> Sequence[CheckEvent]:
        """What came before a turn; ``remote``: also what a server for builds said."""
        if remote:
            return _standing([event for event in self._every if event.place < place])
        return _standing(self._events[: bisect_left(self._places, place)])

    def after(self, place: int) -> Sequence[CheckEvent]:
        """What came in a turn or after it."""
        return self._events[bisect_left(self._places, place) :]


def _with_commits(outcomes: Iterable[PlacedOutcome]) -> Iterator[CheckEvent]:
    """The checks and changes that outcomes are, and each commit that comes right behind one whose hook failed."""
    commits, failing = pattern((outcomes_config().commits,)), False
    for placed in outcomes:
        for event in _events(placed):
            failing |= event.hook == "failed"
            yield event
        if failing and placed.outcome.state != "failed" and _runs(placed.outcome.command, commits):
            failing = False
            yield CheckEvent(placed.turn.place, frozenset(), placed, hook="passed")


def _runs(command: str, shape: re.Pattern[str]) -> bool:
    return any(shape.search(" ".join(words)) for words in commands(command))


def _standing(events: list[CheckEvent]) -> list[CheckEvent]:
    """The events without hooks that failed before a commit came right."""
    right = max((number for number, event in enumerate(events) if event.hook == "passed"), default=-1)
    return [event for number, event in enumerate(events) if number >= right or event.hook != "failed"]


def since_change(events: Sequence[CheckEvent]) -> Sequence[CheckEvent]:
    """The checks behind the last change."""
    return events[_last_change(events) + 1 :]


def of_its_project(events: Sequence[CheckEvent], roots: Collection[str]) -> list[CheckEvent]:
    """The same without checks in a project in which nothing was changed on the request of the last change."""
    last = _last_change(events)
    run = events[last].run if last >= 0 else -1
    places = [event.folder for event in events if event.outcome is None and event.run == run]
    return [
        event for event in events[last + 1 :]
        if not places or not all(are_apart(event.folder, place, roots) for place in places)
    ]  # fmt: skip


def _last_change(events: Sequence[CheckEvent]) -> int:
    return next((place for place in range(len(events) - 1, -1, -1) if events[place].outcome is None), -1)


def of_kinds(events: Iterable[CheckEvent], kinds: Iterable[CheckKind]) -> list[CheckEvent]:
    """The checks of some kinds."""
    wanted = set(kinds)
    return [event for event in events if event.outcome is not None and event.kinds & wanted]


def _events(placed: PlacedOutcome) -> list[CheckEvent]:
    outcome, place = placed.outcome, placed.turn.place
    language = outcomes_config().extensions.get(PurePosixPath(outcome.path).suffix[1:].lower())
    folder = place_of(outcome)
    languages = frozenset({language} if language else ())
    changed = CheckEvent(place, frozenset(), None, changed=languages, folder=folder, run=placed.turn.run)
    events = [changed] if outcome.changes else []
    if outcome.family == "check" and outcome.started:
        events.append(CheckEvent(place, outcome.kinds, placed, folder=folder))
    elif outcome.family == "remote":
        events.append(CheckEvent(place, outcome.kinds, placed, remote=True))
    elif outcome.tool in outcomes_config().subagents:
        events += [changed] if outcome.state != "failed" else []
        events += _reported(placed)
    elif outcome.family == "call" and outcome.failed_kinds:
        events.append(CheckEvent(place, outcome.kinds, placed, folder=folder, hook="failed"))
    elif outcome.family == "look" and outcome.command and _ends_in_failure(outcome.text):
        events.append(CheckEvent(place, frozenset(), placed, shown=True, folder=folder))
    return [*events, changed] if outcome.changes_after else events


def _reported(placed: PlacedOutcome) -> Iterator[CheckEvent]:
    """What the report of a subagent says of checks: of each kind, its last words."""
    text, placed_kinds = placed.outcome.text, dict[CheckKind, tuple[int, int]]()
    passed = [claim for claim in claims_of_text(text) if claim.checks and not claim.hedged]
    for kind in _REPORTED:
        last = max((claim.end for claim in passed if kind in claim.checks), default=-1)
        fails = failure_told(text, kind, max(last, 0))
        if fails:
            placed_kinds[kind] = fails
        elif last >= 0:
            yield CheckEvent(placed.turn.place, frozenset({kind}), placed, reported=True)
    for kind, (first, end) in placed_kinds.items():
        start = placed.outcome.message.text.find(text[first:end])
        at = (start, start + end - first) if start >= 0 else (placed.outcome.start, placed.outcome.end)
        failed = placed.outcome._replace(state="failed", start=at[0], end=at[1])
        failed = failed._replace(family="check", kinds=frozenset({kind}), failed_kinds=frozenset({kind}))
        yield CheckEvent(placed.turn.place, failed.kinds, placed._replace(outcome=failed), reported=True)


def _ends_in_failure(text: str) -> bool:
    """Whether the last line of what was printed is that of a runner that failed, behind others of its own."""
    lines = text.rstrip().split("\n")
    return lines[-1].startswith("FAIL") and outcome_pattern("failed_check").search("\n".join(lines[-4:])) is not None


class Ruling(NamedTuple):
    """What the session says of a claim, and the check that says so."""

    state: ClaimState
    reason: str
    check: CheckEvent | None = None


class RuledClaim(NamedTuple):
    """A claim about a check in its turn, with the ruling."""

    turn: TranscriptTurn
    claim: Claim
    ruling: Ruling


def check_claims(transcript: Transcript, history: CheckHistory) -> Iterator[RuledClaim]:
    """Every claim about a check, in order."""
    for turn in transcript.turns:
        for claim in turn.claims:
            if claim.checks:
                yield RuledClaim(turn, claim, rule_on(turn, claim, history))


def rule_on(turn: TranscriptTurn, claim: Claim, history: CheckHistory) -> Ruling:
    """The ruling on one claim about a check, by what was run before it and behind the last change."""
    remote = pattern((outcomes_config().of_remote,)).search(turn.prose, claim.start, claim.end) is not None
    everything = history.before(turn.place, remote=remote)
    named = named_toolchains(turn, claim)
    own = named_roots(_naming(turn, claim), history.roots)
    earlier = [
        event
        for event in everything
        if not (
            event.outcome
            and event.outcome.outcome.state == "failed"
            and is_of_another_tool(turn, claim, event.outcome.outcome)
        )
        and event.may_be_of(named)
        and not (own and all(are_apart(event.folder, root, history.roots) for root in own))
    ]
    recent = since_change(earlier)
    failing = _failing(turn, claim, recent)
    if failing is not None:
        return failing
    about = named or changed_languages(everything)
    ran, near = of_kinds(recent, claim.checks), of_its_project(earlier, history.roots)
    if ran and not of_kinds(near, claim.checks):
        return Ruling("unsupported", OTHER, ran[-1])
    ran = of_kinds(near, claim.checks)
    checked = [event for event in ran if event.may_be_of(about)]
    if ran and not checked and any(event.outcome and event.toolchains & about for event in everything):
        return Ruling("unsupported", OTHER, ran[-1])
    checked = checked or ran
    if not checked:
        if broken := broken_by(recent, claim.checks):
            return Ruling("unsupported", BROKEN, broken)
        ever = of_kinds(earlier, claim.checks)
        red = bool(ever) and ever[-1].state(claim.checks) == "failed"
        return Ruling("unsupported", RED if red else STALE if ever else NEVER, ever[-1] if ever else None)
    passed = next((event for event in reversed(checked) if event.state(claim.checks) == "passed"), None)
    if passed is None:
        return _silent(claim, checked, recent)
    if broken := broken_by(recent, claim.checks):
        return Ruling("unsupported", BROKEN, broken)
    if lack := _lacking_tool(turn, claim, recent, passed):
        return lack
    lacking = _lacking(turn, claim, [event for event in earlier if event.may_be_of(about)], checked, history)
    if lacking:
        return Ruling("unsupported", lacking, passed)
    return Ruling("backed", "a check passed after the last change", passed)


def _lacking_tool(
    turn: TranscriptTurn, claim: Claim, recent: Sequence[CheckEvent], passed: CheckEvent
) -> Ruling | None:
    """The ruling where a claim names a tool that failed when it last ran, or that was not run since the last change."""
    runs = [event for event in recent if event.outcome and not event.reported and not event.shown]
    outcomes = [event.outcome.outcome for event in runs if event.outcome]
    lack = lacking_tool(turn.prose, claim, outcomes)
    if lack is None:
        return None
    name, place = lack
    if place < 0:
        return Ruling("unsupported", f"{name} was not run since the last change", passed)
    if admits_check(turn, claim, outcomes[place], claim.checks):
        return Ruling("hedged", "the message says that some of it fails", runs[place])
    return Ruling("contradicted", f"the last run of {name} failed, and nothing was changed since", runs[place])


def _lacking(
    turn: TranscriptTurn,
    claim: Claim,
    earlier: Sequence[CheckEvent],
    checked: Sequence[CheckEvent],
    history: CheckHistory,
) -> str:
    """Why checks that passed behind the last change do not show what a claim says; "" where they do."""
    if _ran_other_files(turn, claim, checked):
        return OTHER_TESTS
    if _could_not_start(turn, claim, checked, history.unstarted):
        return UNSTARTED
    if _is_a_part(turn, claim, checked) or _is_of_some(turn, claim, checked):
        return PART
    return NARROWER if _is_narrower(turn, claim, earlier, history.roots) else ""


def named_toolchains(turn: TranscriptTurn, claim: Claim) -> frozenset[str]:
    """The languages of the checks that the sentence of a claim names, between its semicolons."""
    return toolchains(_naming(turn, claim))


def _naming(turn: TranscriptTurn, claim: Claim) -> str:
    """The sentence of a claim, between its semicolons."""
    first, last = sentence(turn.prose, claim.start, claim.end)
    first = max(turn.prose.rfind(";", first, claim.start) + 1, first)
    end = turn.prose.find(";", claim.end, last)
    return turn.message.text[first : end if end >= 0 else last]


def changed_languages(events: Iterable[CheckEvent]) -> frozenset[str]:
    """The languages of what was changed; () where the language of a change is unknown."""
    changes = [event.changed for event in events if event.outcome is None]
    return frozenset[str]().union(*changes) if all(changes) else frozenset()


def broken_by(recent: Iterable[CheckEvent], kinds: Iterable[CheckKind]) -> CheckEvent | None:
    """The check or build that failed behind the last change, where no later one of its language came right."""
    wanted = {"build", *kinds}
    broken: CheckEvent | None = None
    for event in recent:
        if event.state(wanted) == "failed":
            broken = event
        elif broken is not None and event.state(wanted) == "passed" and event.may_be_of(broken.toolchains):
            broken = None
    return broken


def _could_not_start(
    turn: TranscriptTurn, claim: Claim, checked: Sequence[CheckEvent], unstarted: Iterable[PlacedOutcome]
) -> bool:
    """Whether a claim names an option of a check that could not start on its request, and that no other one had."""
    words = set(_WORDS.findall(_naming(turn, claim).lower()))
    had = {option for event in checked if event.outcome for option in _options(event.outcome)}
    own = (placed for placed in unstarted if placed.turn.run == turn.run and placed.turn.place < turn.place)
    return any(words & _options(placed) - had for placed in own)


def _options(placed: PlacedOutcome) -> set[str]:
    return set(_OPTION.findall(placed.outcome.command.lower()))


def _is_a_part(turn: TranscriptTurn, claim: Claim, checked: Sequence[CheckEvent]) -> bool:
    """Whether a claim names all packages, and each check behind the last change that says so some of them."""
    if claim.checks != ("tests",) or _EVERYTHING not in turn.message.text[claim.start : claim.end]:
        return False
    outcomes = [event.outcome.outcome for event in checked if event.outcome and not event.reported]
    return bool(outcomes) and all(each.part and _EVERYTHING not in each.command for each in outcomes)


def _is_of_some(turn: TranscriptTurn, claim: Claim, checked: Sequence[CheckEvent]) -> bool:
    """Whether a claim speaks of the whole suite, and one part of it was run; several parts may be all there is."""
    config, words = bypass_config(), turn.prose[slice(*sentence(turn.prose, claim.start, claim.end))]
    if "tests" not in claim.checks or not pattern((config.whole,)).search(words):
        return False
    if re.search(config.says_left_out, words, re.IGNORECASE):
        return False
    events = [event for event in of_kinds(checked, ("tests",)) if event.state(("tests",)) != "failed"]
    runs = [event.outcome.outcome for event in events if event.outcome and not event.reported and not event.shown]
    folders = {run.command for run in runs if not _test_name().search(run.command)}
    return bool(runs) and all(run.part for run in runs) and len(folders) < 2


def _is_narrower(turn: TranscriptTurn, claim: Claim, earlier: Sequence[CheckEvent], roots: Collection[str]) -> bool:
    """Whether all tests are said to pass, a run of all on this request failed, and only some were run since."""
    first, last = sentence(turn.prose, claim.start, claim.end)
    if claim.checks != ("tests",) or not is_whole(turn.prose, claim):
        return False
    if re.search(bypass_config().says_left_out, turn.prose[first:last]):
        return False
    runs = [
        event for event in of_kinds(earlier, ("tests",)) if event.outcome and not event.reported and not event.shown
    ]
    red = next((place for place in range(len(runs) - 1, -1, -1) if _failed_whole(runs[place], turn)), None)
    if red is None:
        return False
    green = [event for event in runs[red + 1 :] if event.state(("tests",)) == "passed"]
    near = [event for event in green if not are_apart(event.folder, runs[red].folder, roots)]
    return bool(near) and len(near) == len(green) and not any(map(_is_of_all, near))


def _failed_whole(event: CheckEvent, turn: TranscriptTurn) -> bool:
    """Whether a run of all tests failed on the request of a turn."""
    own = event.outcome is not None and event.outcome.turn.run == turn.run
    return own and event.state(("tests",)) == "failed" and _is_of_all(event)


def _is_of_all(event: CheckEvent) -> bool:
    """Whether a run leaves no tests out, by its command."""
    outcome = event.outcome.outcome if event.outcome else None
    return outcome is not None and not outcome.part and not re.search(bypass_config().leaves_out, outcome.command)


def _silent(claim: Claim, checked: Sequence[CheckEvent], recent: Sequence[CheckEvent]) -> Ruling:
    """The ruling where no check says that it passed: some print nothing where all is well."""
    silent = next((event for event in reversed(checked) if event.kinds & SILENT & set(claim.checks)), None)
    if silent is not None and (broken := broken_by(recent, claim.checks)):
        return Ruling("unsupported", BROKEN, broken)
    if silent is not None:
        return Ruling("backed", "a check ran after the last change and printed no failure", silent)
    return Ruling("unsupported", "the output of the check does not say that it passed", checked[-1])


def _failing(turn: TranscriptTurn, claim: Claim, recent: Sequence[CheckEvent]) -> Ruling | None:
    """The ruling where the latest check of a kind failed, and nothing was changed since."""
    for kind in claim.checks:
        own = of_kinds(recent, (kind,))
        if not own or own[-1].state((kind,)) != "failed":
            continue
        failed = own[-1]
        if failed.outcome is None:
            continue
        if _is_about_a_part(turn, claim, own[:-1]) and not _names_image(turn, claim, failed.outcome.outcome):
            continue
        if admits_check(turn, claim, failed.outcome.outcome, (kind,)):
            if unnamed := unnamed_failure(turn, claim, failed.outcome):
                return Ruling("contradicted", UNNAMED, failed._replace(outcome=unnamed))
            counted = counts_as_printed(turn, claim, failed.outcome.outcome)
            reason = "the message counts as many as passed" if counted else "the message says that some of it fails"
            return Ruling("hedged", reason, failed)
        if names_other_tests(turn, claim, failed.outcome.outcome):
            continue
        return Ruling("contradicted", "the latest check of the kind failed, and nothing was changed since", failed)
    return None


def _names_image(turn: TranscriptTurn, claim: Claim, failed: ToolOutcome) -> bool:
    """Whether a claim speaks of an image, and the build of one failed: another build that passed says nothing of it."""
    return bool(_IMAGES.search(_naming(turn, claim)) and _BUILDS_IMAGE.search(failed.command))


def tests_named(turn: TranscriptTurn, claim: Claim) -> list[str]:
    """The tests and files of tests that a claim speaks of by name, without their folders."""
    names = _test_name().finditer(turn.prose, claim.start, claim.end)
    return [part.rstrip("()") for match in names for part in match[0].rsplit("/", 1)[-1].split("::")]


def _test_name() -> re.Pattern[str]:
    return pattern((claims_config().slots["test_name"],))


def names_other_tests(turn: TranscriptTurn, claim: Claim, failed: ToolOutcome) -> bool:
    """Whether a claim names tests, and an output names those that failed and none of these."""
    named = tests_named(turn, claim)
    fails = any(_test_name().search(name) for name in failing_names(failed))
    return bool(named) and fails and not any(name in failed.text for name in named)


def is_of_another_tool(turn: TranscriptTurn, claim: Claim, outcome: ToolOutcome) -> bool:
    """Whether a claim about style meets a check of types, or one about a linter by its name a check by another one."""
    if claim.checks not in (("lint",), ("types",)):
        return False
    slots, words = claims_config().slots, turn.prose[claim.start : claim.end]
    types, linters = pattern((slots["type_checkers"],)), pattern((slots["linters"],))
    lines = [" ".join(part) for part in commands(outcome.command) if check_kind(part)]
    if claim.checks == ("lint",) and lines and not types.search(words) and all(map(types.search, lines)):
        return True
    named, ran = ({match[0].lower() for match in linters.finditer(text)} for text in (words, "\n".join(lines)))
    return bool(named and ran) and not named & ran


def _ran_other_files(turn: TranscriptTurn, claim: Claim, checked: Sequence[CheckEvent]) -> bool:
    """Whether a claim names files of tests, and each command that was run names others only."""
    named = {name for name in tests_named(turn, claim) if "." in name}
    ran = [event.outcome.outcome.command for event in checked if event.outcome and not event.reported]
    files = [{match[0].rsplit("/", 1)[-1].split("::")[0] for match in _test_name().finditer(line)} for line in ran]
    own = [{name for name in names if "." in name} for names in files]
    return bool(named and own) and all(names and not names & named for names in own)


def _is_about_a_part(turn: TranscriptTurn, claim: Claim, before: Sequence[CheckEvent]) -> bool:
    """Whether a claim speaks of some tests only, and a run of them had passed."""
    return not is_whole(turn.prose, claim) and any(event.state(claim.checks) == "passed" for event in before)


def kinds_of(claim: Claim) -> tuple[CheckKind, ...]:
    """What a claim says was checked; a fix or work that is done is held against every check."""
    return claim.checks or ("tests", "build", "lint", "run")
