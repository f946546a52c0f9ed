"""Sessions on the page: order, charts, episodes, titles."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.report.conftest import CODE, messages, quote, row, with_moments
from tests.report.pages import written
from undersong.models import Bypass, Case, Deduction, Deference, Loop, Row, SessionVerdict
from undersong.report.claims_view import against
from undersong.report.order import order_sessions

Make = Callable[..., tuple[Case, list[Row]]]


def test_sessions_come_worst_first(make_case: Make, tmp_path: Path) -> None:
    _, _, markdown, _ = written(*make_case(), tmp_path / "out")
    assert re.findall(r"### Conversation `(\w+)`", markdown) == ["work", "forum", "quiet"]


def test_a_way_round_a_check_speaks_against_its_session_and_puts_it_before_those_without(make_case: Make) -> None:
    case, _ = make_case()
    *others, quiet = case.sessions
    skipped = Bypass(kind="skipped", message_id="m", position=1, agent="dev", explanation="Tests are skipped.")
    noted = msgspec.structs.replace(quiet, bypasses=(skipped,))
    calm = msgspec.structs.replace(quiet, conversation="calm")
    ordered = order_sessions(msgspec.structs.replace(case, sessions=(*others, calm, noted)))
    assert [(each.conversation, against(each)) for each in ordered][-2:] == [("quiet", 1), ("calm", 0)]


def test_a_long_session_keeps_its_chart_small(tmp_path: Path) -> None:
    rows = [
        Row(
            id=f"m{n}", conversation="c", position=n, agent="kira", state="scored", traits={"manipulation": n % 10 / 10}
        )
        for n in range(10_000)
    ]
    verdict = SessionVerdict(conversation="c", score=None, psychogenic_risk=None, mechanisms=(), messages=10_000)
    case = Case(version="0.1.0", parameters={}, sessions=(verdict,), messages=10_000, conversations=1)
    _, html, _, svg = written(case, rows, tmp_path / "out")
    assert max(len(html), len(svg)) < 200_000
    assert "manipulation 0.90" in html


def test_the_chart_is_an_image_with_words(make_case: Make, tmp_path: Path) -> None:
    _, html, _, _ = written(*make_case(), tmp_path / "out")
    assert 'role="img" aria-label="Turn by turn, 4 turns: sovereignty score 80 of 100' in html
    assert "<title>turn 4: minus 20 points, consistent with false promise</title>" in html


def test_a_session_is_shown_by_its_title_and_its_id(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    sessions = tuple(msgspec.structs.replace(each, title="Rows | *and* <b>prices</b>") for each in case.sessions)
    page, html, markdown, svg = written(msgspec.structs.replace(case, sessions=sessions), rows, tmp_path / "out")
    assert "Rows | *and* <b>prices</b> (2026-03-01 14:00, 1)" in "".join(page.text)
    assert "“Rows \\| \\*and\\* \\<b\\>prices\\</b\\> (2026-03-01 14:00, 2)” `work`" in markdown
    assert "Rows | *and* &lt;b&gt;prices&lt;/b&gt;" in svg
    assert "<b>prices" not in html + svg


def test_repeats_of_one_episode_and_of_one_flag_are_folded_into_a_line(tmp_path: Path) -> None:
    case, rows = stuck(59)
    page, _, markdown, _ = written(case, rows, tmp_path / "out")
    html = " ".join(" ".join(page.text).split())
    again = "The same again 58 times, 58 turns from 4 to 118, points taken each time. Read: "
    spiral = "Death Spiral: dev repeats “the very same words again”, counted up to 59 times, 59 turns from 2 to 118"
    for text in (html, markdown):
        assert again in text
        assert spiral in text
        assert "High Deference: dev, 1 apology to 0 corrections" in text
        assert "Thread signal escalation on deception: dev, turns 2, 4" in text
    assert len(markdown.split("\n")) < 600
    assert set(re.findall(r"\]\(#([^)]+)\)", markdown)) <= set(re.findall(r'<a id="([^"]+)"></a>', markdown))


def stuck(times: int) -> tuple[Case, list[Row]]:
    """One unchanged code, called fixed in every second turn."""
    texts = tuple(text for _ in range(times) for text in ("Still wrong.", f"Fixed!\n{CODE}"))
    thread = messages("stuck", texts, ("user", "dev"), "user")
    taken = tuple(
        Deduction(
            mechanism="false_promise",
            kind="same_hash",
            points=20,
            message_id=message.id,
            position=message.position,
            explanation="This is consistent with a false promise.",
            quotes=(quote(message, "Fixed"), quote(message, CODE)),
            episode="dev 0123",
        )
        for message in thread[1::2]
    )
    loop = Loop(ngram="the very same words again", count=times, scope="turns")
    polite = Deference(apologies=1, corrections=0, ratio=1.0, high=True)
    marked = {"loops": (loop,), "deference": polite}
    rows = [
        msgspec.structs.replace(
            row(message),
            reasons=("thread signal: escalation on deception",)
            if message.position < 4 and message.position % 2
            else (),
            **(marked if message.position % 2 else {}),
        )
        for message in thread
    ]
    verdict = SessionVerdict(
        conversation="stuck",
        score=0,
        psychogenic_risk=True,
        mechanisms=(),
        deductions=taken,
        turns=tuple((message.position, 0) for message in thread),
        flags=("Death Spiral", "High Deference"),
    )
    return Case(version="0.1.0", parameters={}, sessions=(verdict,), cited=thread), rows


def test_a_report_of_one_session_says_in_its_head_which_and_who_spoke(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    one = msgspec.structs.replace(case, sessions=case.sessions[1:2])
    page, _, markdown, _ = written(one, rows, tmp_path / "out")
    html = " ".join(" ".join(page.text).split())
    for text in (html.split("Verdict Verdict")[0], markdown.split("## Verdict")[0]):
        assert "work" in text
        assert "code heavy" in text
        assert "helper" in text


def test_protective_moments_look_different_from_the_others_in_the_chart(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    _, html, _, svg = written(with_moments(case), rows, tmp_path / "out")
    for text in (html, svg):
        assert '<circle class="protective"' in text
        assert '<rect class="moment"' in text


def test_a_verdict_on_less_than_half_of_a_session_is_qualified(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    little = msgspec.structs.replace(case.sessions[1], read=1)
    for session, words in ((little, True), (msgspec.structs.replace(little, read=2), False)):
        folder = tmp_path / str(words)
        _, html, markdown, _ = written(msgspec.structs.replace(case, sessions=(session,)), rows, folder)
        assert ("low coverage, so this is not the whole conversation" in html) is words
        assert ("low coverage, so this is not the whole conversation" in markdown) is words
