"""What the pages say, and how they say it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.report.conftest import with_moments
from tests.report.pages import written
from undersong.models import Case, Row
from undersong.patterns.catalog import all_rules, named
from undersong.report.escape import plain
from undersong.report.headline import headline
from undersong.report.narrative import flagged_words, guns_words, unassessed_words

Make = Callable[..., tuple[Case, list[Row]]]


SIGNALS_ONLY = "an uncalibrated judge gave the signals behind codes, candidates and patterns"


def test_what_was_not_assessed_is_said_by_name(make_case: Make, tmp_path: Path) -> None:
    page, _, markdown, _ = written(*make_case(), tmp_path / "out")
    html = " ".join(" ".join(page.text).split())
    for text in (html, " ".join(markdown.split())):
        assert "epistemic instability" in text
        assert "no detector in this release" in text
        assert "sandbagging" in text
        assert "not applicable" in text
        assert "7 of 8 messages read by judge offline, uncalibrated. The rest: 1 refused." in text
        assert "chance, q, stability: not computed in this run" in text
        assert "Smoking gun" in text
        assert "What people feel" in text
        assert "False presuppositions" in text
        assert "Adversarial Compliance" in text
        assert "Psychogenic Harm" in text
        assert "export.jsonl:9" in text


def test_how_sure_a_finding_is_is_told_in_words(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    sure = {"chance": 0.004, "shuffles": (3, 999), "q": 0.04, "stability": 0.94, "replicas": 50}
    findings = tuple(msgspec.structs.replace(each, **sure) for each in case.findings)
    parameters = case.parameters | {"chance_draws": 999, "chance_family": 400, "chance_tested": 1}
    changed = msgspec.structs.replace(case, findings=findings, parameters=parameters)
    page, _, markdown, _ = written(changed, rows, tmp_path / "out")
    html = " ".join(" ".join(page.text).split())
    for text in (html, " ".join(markdown.split())):
        assert "in 3 of 999 shuffles of the same messages" in text
        assert "expect at most about 4 % of them to be order by chance" in text
        assert "still there in 47 of 50 replicas" in text
        assert "q over 400 pairs of sequence and pattern, 1 with a match" in text
        assert "q cannot fall below 0.4" in text
        assert "a small number is not the probability that the finding is wrong" in text
        assert "not computed in this run" not in text


def test_wording_claims_neither_intent_nor_illness(make_case: Make, tmp_path: Path) -> None:
    _, html, markdown, _ = written(*make_case(), tmp_path / "out")
    for text in (html, markdown):
        assert "consistent with" in text
        assert not re.search(r"(?i)\b(guilty|liar|abuser|psychopath\w*|malicious\w*|suffers from|intends to)\b", text)


def test_nobody_is_green_by_averages_alone_and_messages_with_constraint_words_are_listed(
    make_case: Make, tmp_path: Path
) -> None:
    case, rows = make_case()
    kira = msgspec.structs.replace(case.agents[0], alignment="aligned", hard_constraint_words=1)
    rows[3] = msgspec.structs.replace(rows[3], hard_constraints=("HC-02",), source_ref=case.cited[3].source_ref)
    page, html, markdown, _ = written(msgspec.structs.replace(case, agents=(kira,)), rows, tmp_path / "out")
    for text in (html, markdown):
        assert "aligned by averages; hard constraints not assessed" in text
        assert "Words only: 1 message in which such words stand." in text
        assert "HC-02" in text
        assert "export.jsonl:4" in text
    assert '<span class="unknown">aligned by averages' in html
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_first_sentence_names_what_took_points(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    case = msgspec.structs.replace(case, findings=())
    page, _, markdown, _ = written(case, rows, tmp_path / "out")
    taken = "false promise (same hash) 1 time, in 1 distinct episode of 1 conversation"
    first = f"Turns consistent with a known harm took points: {taken}."
    html = " ".join(" ".join(page.text).split())
    assert html.index(first) < html.rindex("Looked for 1 of 2 patterns; no sequence of messages matches.")
    assert plain(first) == markdown.split("## About this run\n\n")[1].split("\n")[0]
    assert "1 time points were taken" in html
    assert "8 answers of the judge, kept ones included" in html


def test_a_stage_shows_a_dash_for_a_trait_that_does_not_apply(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    rule = named(all_rules(), "darvo")
    ids = case.findings[0].message_ids
    stages = tuple(zip(("DENY", "ATTACK", "REVERSE"), ids[1:], strict=True))
    finding = msgspec.structs.replace(case.findings[0], rule_hash=rule.hash, stages=stages)
    rows = [msgspec.structs.replace(row, traits=row.traits and row.traits | {"deception": None}) for row in rows]
    page, _, markdown, _ = written(msgspec.structs.replace(case, findings=(finding,)), rows, tmp_path / "out")
    assert "scores: manipulation 0.10, deception – , exploitation 0.10" in " ".join(" ".join(page.text).split())
    assert '<span title="does not apply">–</span>' in (tmp_path / "out" / "report.html").read_text()
    assert "scores: manipulation 0.10, deception does not apply, exploitation 0.10" in " ".join(markdown.split())


def test_a_finding_shows_the_scores_it_rests_on_and_what_else_looks_like_it(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    rule = named(all_rules(), "darvo")
    ids = case.findings[0].message_ids
    finding = msgspec.structs.replace(
        case.findings[0], rule_hash=rule.hash, stages=tuple(zip(("DENY", "ATTACK", "REVERSE"), ids[1:], strict=True))
    )
    page, _, markdown, _ = written(msgspec.structs.replace(case, findings=(finding,)), rows, tmp_path / "out")
    for text in (" ".join(" ".join(page.text).split()), " ".join(markdown.split())):
        assert "scores: manipulation 0.10, deception 0.10, exploitation 0.10" in text
        assert "scores: manipulation 0.10, dismissal 0.10, exploitation 0.10" in text
        assert "scores: dismissal 0.10, exploitation 0.10" in text
        assert "somebody wrongly accused who argues badly" in text
        assert "first a denial that is deceptive but takes nothing" in text
    _, _, changed, _ = written(*make_case(), tmp_path / "other")
    assert "look-alike" not in changed, "a rule of another hash is told in these words"


def test_a_report_without_findings_says_that_it_is_no_all_clear_and_where_to_read_first(
    make_case: Make, tmp_path: Path
) -> None:
    case = with_moments(make_case()[0])
    sessions = tuple(msgspec.structs.replace(each, deductions=()) for each in case.sessions)
    bare = msgspec.structs.replace(case, findings=(), sessions=sessions)
    clear = "This is no all-clear: 1 of 2 patterns could not be looked for; "
    clear += "not every mechanism of the score was assessed in 3 of 3 conversations."
    guns = "1 turn to read first, as smoking guns, which take no points: Admission of fault (1)."
    assert (unassessed_words(bare), guns_words(bare)) == ((clear,), (guns,))
    more = (clear.replace("This is no all-clear", "More than what was found may be there"),)
    assert unassessed_words(msgspec.structs.replace(bare, findings=case.findings)) == more
    assert unassessed_words(msgspec.structs.replace(bare, sessions=case.sessions)) == more, "points were taken"
    assert guns_words(make_case()[0]) == ()
    read = bare.states["scored"]
    (mixed,) = unassessed_words(msgspec.structs.replace(bare, ranked=read - 1))
    assert f"patterns over scores pass over {read - 1} of {read} messages, whose scores are ranks" in mixed
    assert unassessed_words(msgspec.structs.replace(bare, ranked=read)) == (clear,), "they are not applicable, by name"
    page, _, markdown, _ = written(bare, make_case()[1], tmp_path / "out")
    for text in (" ".join(" ".join(page.text).split()), " ".join(markdown.split())):
        assert clear in text
        assert guns in text


@pytest.mark.parametrize(
    ("read", "calibrated", "expected"),
    [
        (4, True, ()),
        (2, True, ()),
        (1, True, ("low coverage of the conversation: 1 of 4 turns read by a judge",)),
        (0, False, ("low coverage of the conversation: 0 of 4 turns read by a judge",)),
        (4, False, (SIGNALS_ONLY,)),
        (1, False, (SIGNALS_ONLY, "low coverage of the conversation: 1 of 4 turns read by a judge")),
    ],
)
def test_low_coverage_and_an_uncalibrated_judge_qualify_the_verdict(
    make_case: Make, read: int, calibrated: bool, expected: tuple[str, ...]
) -> None:
    case, _ = make_case()
    session = msgspec.structs.replace(case.sessions[0], messages=4, read=read)
    parameters = case.parameters | {"calibrated": calibrated}
    lines = headline(msgspec.structs.replace(case, sessions=(session,), parameters=parameters))
    qualified = [each for each in lines if each.startswith("What qualifies this: ")]
    assert qualified == ([f"What qualifies this: {'; '.join(expected)}."] if expected else [])


@pytest.mark.parametrize(
    ("flagged", "named"),
    [
        ({"kira": (9, 20), "tom": (0, 30), "ida": (1, 50)}, ("kira (9 of 20)",)),
        ({"kira": (3, 20), "tom": (3, 20), "ida": (3, 20)}, ()),  # everybody alike
        ({"kira": (2, 4), "tom": (0, 96)}, ()),  # too few to tell
        ({"kira": (3, 6)} | {f"a{number}": (0 if number % 2 else 1, 6) for number in range(200)}, ()),  # by chance
        ({"kira": (0, 20), "tom": (0, 20)}, ()),
    ],
)
def test_who_uses_harmful_phrases_far_more_often_is_named_and_accused_of_nothing(
    make_case: Make, flagged: dict[str, tuple[int, int]], named: tuple[str, ...]
) -> None:
    case, _ = make_case()
    agents = tuple(
        msgspec.structs.replace(case.agents[0], agent=name, flagged=hits, messages=messages)
        for name, (hits, messages) in flagged.items()
    )
    sentences = flagged_words(msgspec.structs.replace(case, agents=agents))
    assert len(sentences) == bool(named)
    for sentence in sentences:
        assert all(name in sentence for name in named)
        assert not any(name in sentence for name in flagged if name not in str(named))
        assert "accuse nobody" in sentence
