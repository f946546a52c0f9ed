"""The transcript: every turn once, with its marks, its tools and its place; the families, the months and the index."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.report.conftest import talks, with_moments
from tests.report.pages import Page, written
from undersong.models import Case, Conversation, Finding, Message, Row, SessionVerdict, ToolCall, ToolResult
from undersong.patterns.catalog import all_rules
from undersong.report import transcript_view
from undersong.report.order import OTHER, group_of
from undersong.report.transcript_view import pages_of
from undersong.report.view_model import months
from undersong.report.writer import write

Make = Callable[..., tuple[Case, list[Row]]]


def read(folder: Path, name: str) -> Page:
    """A page of the report, parsed."""
    page = Page()
    page.feed((folder / name).read_text(encoding="utf-8"))
    return page


def test_every_turn_stands_in_the_transcript_with_its_marks(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    _, html, _, _ = written(with_moments(case), rows, tmp_path / "out", transcripts=True)
    assert html.count('<article class="message turn') == len(case.cited)
    turn = html.split('<article class="message turn')[4]
    for words in (
        "−20 false promise",
        "Admission of fault",
        "[CODE-A: Sympathetic Arousal]",
        "Pushback",
        "<mark>Fixed",
    ):
        assert words in turn
    assert 'class="badge high" href="#s-1"' in turn
    assert 'id="cited"' not in html  # every message that is quoted stands in the transcript


def test_each_claim_leads_to_its_turn_and_each_turn_is_there_once(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    page, _, _, _ = written(with_moments(case), rows, tmp_path / "out", transcripts=True)
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} <= set(page.ids)


def test_turns_beyond_a_page_stand_on_the_next_one(
    make_case: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_view, "PAGE_TURNS", 3)
    case, rows = make_case()
    write(case, rows, tmp_path / "out", conversations=talks(case).get)
    names = ["report.html", *(f"conversation-{number}.html" for number in (1, 2, 3, 4))]
    pages = {name: read(tmp_path / "out", name) for name in names}
    turns = [sum(each.startswith("m-") for each in page.ids) for page in pages.values()]
    assert turns == [0, 3, 1, 3, 1]
    for page in pages.values():
        for link in page.links:
            name, _, anchor = link.partition("#")
            assert not anchor or anchor in (pages[name] if name else page).ids


def test_pages_are_filled_by_turns_and_by_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_view, "PAGE_CHARACTERS", 100)
    monkeypatch.setattr(transcript_view, "HERE", 4)
    sizes = (40, 40, 40, 500, 1)
    thread = tuple(
        Message(id=f"m{n}", conversation="c", position=n, author="a", role="agent", text="x" * size)
        for n, size in enumerate(sizes)
    )
    assert list(pages_of([Conversation(id="c", source_format="x", messages=thread)]).values()) == [1, 1, 2, 3, 4]


def test_tools_are_shown_with_their_errors_and_cut(tmp_path: Path) -> None:
    message = Message(
        id="m0", conversation="c", position=0, author="dev", role="assistant", text="I run it.",
        tool_calls=(ToolCall(name="Bash", input={"command": "pytest <b>"}),),
        tool_results=(ToolResult(text="y" * 5000), ToolResult(text="1 failed", is_error=True)),
    )  # fmt: skip
    verdict = SessionVerdict(conversation="c", score=None, psychogenic_risk=None, mechanisms=())
    case = Case(version="0.1.0", parameters={}, sessions=(verdict,), cited=(message,))
    _, html, _, _ = written(case, [], tmp_path / "out", transcripts=True)
    assert "calls Bash" in html
    assert "pytest &lt;b&gt;" in html
    assert '<details class="tool" open><summary class="badtext">tool error</summary>' in html
    assert "y" * 1500 + "<span" in html


def test_every_shipped_pattern_stands_in_a_family() -> None:
    assert [rule.id for rule in all_rules() if group_of(rule.pattern) == OTHER] == []
    assert group_of("a_rule_of_my_own") == OTHER


def test_findings_are_told_without_the_names_of_families(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    _, html, markdown, _ = written(case, rows, tmp_path / "out")
    for text in (html.split('id="findings"')[1], markdown.split("## Findings")[1]):
        section = text[: text.index("Conversations")]
        assert "Love bombing cycle" in section
        assert "Psychogenic Harm" not in section
        assert "Adversarial Compliance" not in section


def dated(scores: dict[str, int | None]) -> tuple[Case, dict[str, tuple[datetime, datetime]]]:
    """Sessions by their first day."""
    sessions = tuple(
        SessionVerdict(conversation=day, score=score, psychogenic_risk=None, mechanisms=(), messages=3)
        for day, score in scores.items()
    )
    spans = {day: (datetime.fromisoformat(day).replace(tzinfo=UTC),) * 2 for day in scores}
    return Case(version="0.1.0", parameters={}, sessions=sessions), spans  # type: ignore[return-value]


def test_a_history_is_told_month_by_month() -> None:
    history = months(*dated({"2026-01-05": 80, "2026-01-20": 40, "2026-03-01": None}))
    assert [(m.name, m.sessions, m.messages, m.lowest, m.mean, m.scored) for m in history] == [
        ("2026-01", 2, 6, 40, 60.0, 2),
        ("2026-03", 1, 3, None, None, 0),
    ]


def test_one_month_is_no_trend() -> None:
    assert months(*dated({"2026-01-05": 80, "2026-01-20": 40})) == ()


def test_a_finding_counts_in_the_month_of_its_first_session(make_case: Make) -> None:
    finding = make_case()[0].findings[0]
    case, spans = dated({"2026-01-05": 80, "2026-02-01": 40})
    across = msgspec.structs.replace(finding, conversations=("2026-01-05", "2026-02-01"))
    findings: tuple[Finding, ...] = (across,)
    assert [m.findings for m in months(msgspec.structs.replace(case, findings=findings), spans)] == [1, 0]


def test_several_sessions_have_an_index_the_worst_first(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    write(case, rows, tmp_path / "several")
    index = read(tmp_path / "several", "index.html")
    whole = read(tmp_path / "several", "report.html")
    links = [link for link in index.links if "#" in link]
    assert [link for link in links if "#s-" in link] == ["report.html#s-1", "report.html#s-2", "report.html#s-3"]
    assert {link.partition("#")[2] for link in links} <= set(whole.ids)
    text = "".join(index.text).split("sovereignty score", 1)[1]  # from the table of sessions on
    assert text.index("work") < text.index("forum") < text.index("quiet")
    write(msgspec.structs.replace(case, sessions=case.sessions[:1]), rows, tmp_path / "one")
    assert not (tmp_path / "one" / "index.html").exists()
