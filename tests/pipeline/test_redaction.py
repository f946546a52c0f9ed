"""Redaction: nothing that is masked stands anywhere in a report, and the report still proves itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Undersong
from undersong.pipeline.masking import Masker, redaction_config
from undersong.verify import check

SECRETS = {
    "mail": "mo.berg@mail.example.org",
    "phone": "+49 170 1234567",
    "key": "sk-test-4f9aQ81bb2c7710de5a3",
    "name": "Anna Schmidt",
}
CASES = [(kind, case) for kind, each in redaction_config().kinds.items() for case in each.cases]
REPORT = Path("undersong-report")


@pytest.mark.parametrize(("kind", "case"), CASES, ids=[f"{kind}: {case['text']}" for kind, case in CASES])
def test_every_case_of_the_file_holds(kind: str, case: dict[str, object]) -> None:
    text = str(case["text"])
    masked = Masker().text(text)
    own = [text[span.start : span.end] for span in masked.spans if span.mask.startswith(f"[{kind}-")]
    assert own == case["masked"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Schmidt wrote", "[NAME-1] wrote"),
        ("anna.schmidt/42", "[NAME-1]/42"),
        ("ANNA  SCHMIDT's", "[NAME-1]'s"),
        ("Hannah Schmidt", "Hannah Schmidt"),
        ("Anna Schmidtke", "Anna Schmidtke"),
    ],
)
def test_a_listed_name_is_masked_as_whole_words(text: str, expected: str) -> None:
    assert Masker(["Anna Schmidt"]).text(text).text == expected


def test_the_same_secret_has_the_same_mask_and_another_one_another() -> None:
    masker = Masker()
    assert masker.text("a@x.org b@x.org A@X.ORG").text == "[EMAIL-1] [EMAIL-2] [EMAIL-1]"


@pytest.mark.parametrize("name", ["7f" * 32, "550e8400-e29b-41d4-a716-446655440000", "20260314-103000", "m1234567890"])
def test_ids_are_not_taken_for_phones(name: str) -> None:
    assert Masker().name(name) == name


@given(st.lists(st.sampled_from(["so ", "a@x.org", " and ", "+49 170 1234567", "ß", "\n"])), st.integers(0, 60))
def test_places_outside_a_mask_keep_their_character(parts: list[str], at: int) -> None:
    text = "".join(parts)
    masked = Masker().text(text)
    if at < len(text) and not any(span.start <= at < span.end for span in masked.spans):
        assert masked.text[masked.place(at)] == text[at]


@pytest.fixture
def source(undersong: Undersong) -> Path:  # noqa: ARG001 - for its folder
    """A talk full of secrets, in texts, names, titles, loops and broken code."""
    secrets = " ".join(SECRETS.values())
    code = f"```python\ndef total(rows):\n    return '{SECRETS['key']}', sum(rows)\n```"
    texts = ("Help.", f"Here, {secrets}:\n{code}", f"Still wrong, {secrets}", f"I have fixed it, {secrets}.\n{code}")
    lines = [
        {"id": f"m{n}", "conversation": f"talk of {SECRETS['name']}", "conversation_title": f"For {SECRETS['mail']}",
         "author": SECRETS["name"] if n % 2 == 0 else "dev", "role": "user" if n % 2 == 0 else "assistant",
         "time": f"2026-01-01T00:0{n}:00Z", "text": text, "model": f"for {SECRETS['mail']}",
         **({"timezone": f"of {SECRETS['name']}"} if n == 0 else {})}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    path = Path(f"{SECRETS['name']}.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_no_secret_stands_anywhere_in_a_redacted_report(undersong: Undersong, source: Path) -> None:
    ran = undersong("audit", str(source), "--redact", "--redact-name", SECRETS["name"])
    assert ran.code == 0, ran.err
    texts = {path.name: path.read_text() for path in REPORT.iterdir()}
    for text in (*texts.values(), ran.out, ran.err):
        for secret in (*SECRETS.values(), "mo.berg", "1234567", "4f9aQ81bb2c7710de5a3", "Schmidt"):
            assert secret.casefold() not in text.casefold()
    assert "[NAME-1]" in texts["report.html"]
    facts = json.loads(texts["manifest.json"])["parameters"]["redacted"]
    none = dict.fromkeys(("card", "iban", "ip", "ssn"), 0)
    found = {"key": 1, "email": 1, "phone": 1, "name": 1, "names_listed": 1, "messages": 3, "places": 14}
    assert facts == none | found
    assert "This report is redacted: 1 distinct email" in texts["report.html"]
    assert "This report is redacted" in texts["forensic_audit_report.md"]


def test_a_redacted_report_verifies_with_its_inputs(undersong: Undersong, source: Path) -> None:
    undersong("audit", str(source), "--redact", "--redact-name", SECRETS["name"])
    result = check(REPORT, [source])
    assert result.discrepancies == ()
    assert "scan, verdict, offline scores, what moved them, and route: the texts are redacted" in result.skipped
    case = json.loads((REPORT / "case.json").read_text())
    deduction = case["sessions"][0]["deductions"][0]
    assert deduction["quotes"][0]["text"] == "I have fixed"
    source.write_text(source.read_text() + "\n")
    assert any("input" in each.what for each in check(REPORT, [source]).discrepancies)


def test_names_come_from_a_file_and_a_missing_one_is_told(undersong: Undersong, source: Path) -> None:
    Path("names.txt").write_text("Anna Schmidt\n\nMo Berg\n")
    assert undersong("audit", str(source), "--redact-names", "names.txt").code == 0
    assert "Schmidt" not in (REPORT / "report.html").read_text()
    ran = undersong("audit", str(source), "--redact-names", "nowhere.txt")
    assert ran.code == 2
    assert "--redact-names nowhere.txt: cannot be read" in ran.err


def test_without_redaction_nothing_is_masked(undersong: Undersong, source: Path) -> None:
    undersong("audit", str(source))
    assert SECRETS["phone"] in (REPORT / "report.html").read_text()
    assert "redacted" not in json.loads((REPORT / "manifest.json").read_text())["parameters"]
