"""What counts as a claim, and what a tool's answer says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.scan.dialogue import change, scan
from tests.verdict.test_mechanisms import dialogue, judged
from undersong.datafiles.verdict_config import claims_config, outcomes_config
from undersong.datafiles.yaml_loader import RULES
from undersong.models import Message, ToolCall, ToolResult
from undersong.scan.phrases import load_book
from undersong.verdict.claim_kinds import ledger_kind
from undersong.verdict.claims import (
    FLAGS,
    _filled,
    admits,
    claims,
    claims_of_text,
    grammar,
    possible_patterns,
    sentences,
)  # fmt: skip
from undersong.verdict.tool_outcomes import outcome

SAID = {
    "I've fixed the leak.": "fix",
    "We have now resolved it.": "fix",
    "The bug is fixed.": "fix",
    "All 12 tests pass.": "tests",
    "12/12 tests pass": "tests",
    "It works now.": "works",
    "Done!": "done",
    "You're all set.": "done",
    "I have sent the letter.": "act",
    "Your flight has been booked.": "act",
    "Great, saved to disk.": "act",
    "Successfully deployed.": "act",
    "It should be fixed now.": "fix",
}
WORDS: list[tuple[str, str]] = [
    (kind, words)
    for kind, group in yaml.safe_load((Path(__file__).parent / "claim_words.yaml").read_text(encoding="utf-8")).items()
    for words in group
]
STARTED = yaml.safe_load((Path(__file__).parent / "not_started.yaml").read_text(encoding="utf-8"))
SESSIONS = (Path(__file__).parent / "ledger", RULES / "session/cases")


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_what_agents_write_in_summaries_is_listed_by_its_kind(kind: str, words: str) -> None:
    kinds = [ledger_kind(claim, words) for claim in claims_of_text(words) if not claim.hedged]
    assert kind in kinds if kind != "none" else not any(kinds)


def test_a_sentence_that_is_not_searched_has_no_match():
    texts = {path.read_text(encoding="utf-8") for folder in SESSIONS for path in folder.glob("*.yaml")} | set(SAID)
    lines = {text[first:last] for text in texts for first, last in sentences(text)} | {words for _, words in WORDS}
    config, matched = claims_config(), 0
    whole = {
        kind: re.compile("|".join(_filled(form, config) for form in forms), FLAGS)
        for kind, forms in config.forms.items()
    }
    for line in lines:
        lower = line.lower()
        words = re.findall(r"[a-z]+", lower)
        for form in grammar().forms:
            spans = [match.span() for match in whole[form.kind].finditer(line)]
            matched += bool(spans)
            assert form.may_match(lower, words) or not spans, (form.kind, line)
            assert [match.span() for match in form.matches(line, possible_patterns(line))] == spans, (form.kind, line)
    assert matched > 100, "too few sentences for this to say anything"


UNSAID = [
    "Is it fixed?",
    "I'll fix it tomorrow.",
    "If it is fixed, tell me.",
    "I couldn't fix it.",
    "It isn't fixed.",
    "Let me know once it has been sent.",
    "I would have sent it.",
    "Make sure it is saved.",
    "> I've fixed it",
    "```\nprint('fixed')\n```",
    "You are working so hard on this.",
    "The tests must pass.",
]


@pytest.mark.parametrize(("text", "kind"), SAID.items(), ids=SAID)
def test_a_statement_in_the_agents_voice_is_a_claim(text: str, kind: str) -> None:
    conversation = dialogue(f"agent: {text}")
    result = claims(conversation.messages[0], scan(conversation)[0][0])
    assert [each.kind for each in result][:1] == [kind]


@pytest.mark.parametrize("text", UNSAID)
def test_what_is_asked_planned_denied_or_quoted_is_no_claim(text: str) -> None:
    conversation = dialogue(f"agent: {text}")
    assert claims(conversation.messages[0], scan(conversation)[0][0]) == ()


@pytest.mark.parametrize(
    ("text", "admitted"),
    [
        ("It was not sent.", True),
        ("Two tests still fail.", True),
        ("The upload timed out.", True),
        ("I spoke too soon.", True),
        ("I fixed the failing test.", False),
        ("No errors, 0 failed.", False),
        ("You will not be charged.", False),
    ],
)
def test_an_admission_speaks_of_a_failure_that_stands(text: str, admitted: bool) -> None:
    assert (admits(text) is not None) is admitted


RESULTS = [
    ("Bash", {"command": "pytest"}, "1 failed, 2 passed in 0.1s", None, ("check", "failed")),
    ("Bash", {"command": "pytest"}, "3 passed in 0.1s", None, ("check", "passed")),
    ("Bash", {"command": "pytest"}, "2 passed, 0 failed", False, ("check", "passed")),
    ("Bash", {"command": "cat a.log"}, "1 failed, 2 passed in 0.1s", None, ("look", "unknown")),
    ("Bash", {"command": "git push"}, "Exit code: 1\nrejected", None, ("call", "failed")),
    ("shell", {"command": ["true"]}, '{"output": "", "metadata": {"exit_code": 2}}', None, ("look", "unknown")),
    (
        "shell",
        {"command": ["cargo", "test"]},
        '{"output": "x", "metadata": {"exit_code": 0}}',
        None,
        ("check", "passed"),
    ),
    ("Edit", {"file_path": "a.py"}, "The file a.py has been updated.\n  3\treturn 1", None, ("edit", "unknown")),
    ("Edit", {"file_path": "a.py"}, "String to replace not found in file.", None, ("edit", "failed")),
    ("send_mail", {"to": "a"}, '{"error": null, "id": 3}', None, ("call", "unknown")),
    ("send_mail", {"to": "a"}, '{"error": "bounced"}', None, ("call", "failed")),
    ("send_mail", {"to": "a"}, '{"code": 1001, "name": "part"}', None, ("call", "unknown")),
    ("send_mail", {"to": "a"}, '{"status_code": 503}', None, ("call", "failed")),
    ("get_order", {"id": 1}, "Error: not found", None, ("look", "unknown")),
    ("tool", None, "--- FAIL: TestX (0.0s)\nFAIL", None, ("check", "failed")),
    ("tool", None, "", None, ("call", "unknown")),
]


@pytest.mark.parametrize(("name", "tool_input", "text", "flag", "expected"), RESULTS)
def test_a_result_says_what_came_of_a_call(
    name: str, tool_input: object, text: str, flag: bool | None, expected: tuple[str, str]
) -> None:
    message = Message(id="m", conversation="c", position=0, author=name, role="tool", text=text)
    result = outcome(message, ToolResult(text=text, is_error=flag), ToolCall(name=name, input=tool_input), 0)
    assert (result.family, result.state) == expected
    assert 0 <= result.start <= result.end <= len(text)


@pytest.mark.parametrize(("state", "command", "text", "flag"), STARTED)
def test_a_check_that_could_not_start_says_nothing_of_the_code(
    state: str, command: str, text: str, flag: bool | None
) -> None:
    message = Message(id="m", conversation="c", position=0, author="Bash", role="tool", text=text)
    call = ToolCall(name="Bash", input={"command": command})
    result = outcome(message, ToolResult(text=text, is_error=flag), call, 0)
    assert (result.family, result.state, result.started) == ("check", state, state != "unknown")


def test_both_steps_know_the_same_tools() -> None:
    code = load_book().structure.code
    assert outcomes_config().edit_tools == set(code.tools)
    assert outcomes_config().shell_tools == code.shells
    assert outcomes_config().paths == code.paths


def test_the_same_new_lines_in_two_places_are_no_repeated_version() -> None:
    conversation = dialogue("user: guard both", "agent: Guarding.", "agent: Both are fixed.")
    edits = tuple(
        ToolCall(name="Edit", id=f"c{old}", input={"file_path": "a.py", "old_string": old, "new_string": "if x: go()"})
        for old in ("first()", "second()")
    )
    assert judged(change(conversation, 1, tool_calls=edits)).deductions == ()
