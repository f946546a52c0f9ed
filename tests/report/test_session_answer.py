"""A session without code and without dispute gets an answer; distress codes that no rule sets are listed as such."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from undersong.core.sanitize import title_line
from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.verdict_config import distress_config
from undersong.models import Bypass, SessionVerdict
from undersong.report.headline import words
from undersong.report.session_answer import lowest_score, score_cell, session_answer

UNSET = ["B", "E", "G", "H", "I", "M", "O"]
QUIET = [
    ("user", "I moved here in spring and know nobody."), ("assistant", "That is hard. Is there a club near you?"),
    ("user", "A choir."), ("assistant", "Choirs are kind to newcomers."),
]  # fmt: skip


def test_a_session_without_code_and_without_dispute_still_gets_an_answer(undersong: Undersong) -> None:
    lines = [
        {"id": f"m{n}", "conversation": "s", "author": who, "role": who, "text": text}
        for n, (who, text) in enumerate(QUIET)
    ]
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert undersong("audit", "talk.jsonl", "--no-chance").code == 0
    for page in ("details.md", "report.html"):
        text = " ".join(Path("undersong-report", page).read_text().replace("\\", "").split())
        for words_of_work in (
            "against code, output",
            "claims of work",
            "Semantic camouflage: ",
            "no tool result",
            "not graded",
        ):
            assert words_of_work not in text
        assert "Looked at: 4 messages, for admissions of a fault" in text
        assert "An LLM judge (--judge NAME) would add" in text
        assert "assessed 0 of 4 mechanisms" not in text
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0


def test_what_an_llm_judge_read_is_not_said_to_be_missing() -> None:
    verdict = SessionVerdict(
        conversation="s", score=None, psychogenic_risk=None, mechanisms=(), messages=4, read=4, judges={"offline": 4}
    )
    assert "would add" in session_answer(verdict)
    by_llm = msgspec.structs.replace(verdict, judges={"anthropic:claude-sonnet-5-5": 4})
    assert "would add" not in session_answer(by_llm)
    assert session_answer(by_llm).endswith("no turn noted.")


def test_full_marks_are_not_shown_beside_what_speaks_against_a_session() -> None:
    bypass = Bypass(kind="no_verify", message_id="m3", position=2, agent="a", explanation="Past the hooks.")
    clean = SessionVerdict(conversation="s", score=100, psychogenic_risk=None, mechanisms=(), profile="coding")
    passed_by = msgspec.structs.replace(clean, bypasses=(bypass,))
    assert (score_cell(clean), lowest_score([clean])) == ("100", "100")
    assert (score_cell(passed_by), lowest_score([clean, passed_by])) == ("no points taken", "no points taken")
    assert "100 of 100" not in session_answer(passed_by)
    assert "no points taken, and 1 message speaks against it" in session_answer(passed_by)
    assert title_line("Print the harbour fees of last year", 20) == "Print the harbour …"


def test_the_codes_that_no_rule_sets_are_listed_as_such() -> None:
    settable = {code for conduct in distress_config().conduct.values() for code in (*conduct.codes, *conduct.also)}
    assert sorted(taxonomy().distress_codes.keys() - settable) == UNSET
    assert f"No rule sets the codes {', '.join(UNSET[:-1])} and {UNSET[-1]}" in " ".join(words().clinical.split())


@pytest.mark.parametrize(
    ("code", "by"), [("B", "no rule here"), ("K", "sycophancy"), ("L", "entrainment, failed solutions")]
)
def test_a_code_says_what_sets_it(undersong: Undersong, code: str, by: str) -> None:
    assert f"set by      {by}" in undersong("rules", "show", f"CODE-{code}").out
