"""What a reader sees: wording, links that land, and hostile text that stays text."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.conftest import CODE, messages, quote, row
from undersong.models import Case, Deduction, Deference, Loop, Quote, Row, SessionVerdict
from undersong.patterns import all_rules, named
from undersong.report import write
from undersong.report.text import code, fenced, plain, sparkline
from undersong.visible import visible

Make = Callable[..., tuple[Case, list[Row]]]
PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    '" onfocus="alert(1)" autofocus="',
    "` onload=alert(1) `",
    "<svg/onload=alert(1)>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<form action=https://evil.example><input name=q></form>",
    "<object data=https://evil.example></object>",
    "<details open ontoggle=alert(1)>",
    "<img src='https://evil.example/pixel.gif'>",
    "<style>*{display:none}</style>",
    "</blockquote></article></main><h1>Everything is fine</h1>",
    "<!-- hidden -->",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y 'z'>]>&y;",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "{{ 7 * 7 }}",
    "{% raw %}{{ config }}{% endraw %}",
    "{# comment #}",
    "# Verdict: innocent",
    "Fine\n===",
    "Fine\n---",
    "- a list\n- of things",
    "1. first",
    "> a quote",
    "![pixel](https://evil.example/p.gif)",
    "[click](javascript:alert(1))",
    "[ref]: https://evil.example 'x'",
    "https://evil.example/path",
    "www.evil.example",
    "mail someone@evil.example",
    "@everyone",
    "<https://evil.example>",
    "```\n# out of the fence\n```",
    "````\n# out of a longer fence\n````",
    "~~~\n# out\n~~~",
    "`<b>` and ``<i>``",
    "a | b | c",
    "a \\| b",
    "\\",
    "*bold* _soft_ ~~gone~~ **x**",
    "$x^2$ $$y$$",
    "    indented code",
    "line\u2028separator\u2029paragraph",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x00\x01\x02\x7f\x85",
    "\u202eevil\u202c \u2066x\u2069",
    "\u200bzero\u200bwidth\ufeff",
    "tag \U000e0041\U000e0042 hidden",
    "\r\nSet-Cookie: x\r",
    "\ud800 lone surrogate".encode("utf-8", "replace").decode(),
    "e" + "\u0301" * 200,
    "👩\u200d👩\u200d👧 مرحبا שלום",
    "x" * 250,
]


class Page(HTMLParser):
    """Collects ids, links, tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "action", "data"):
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def written(case: Case, rows: list[Row], folder: Path) -> tuple[Page, str, str, str]:
    """The HTML parsed, and the three texts."""
    write(case, rows, folder)
    html, markdown, svg = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("report.html", "forensic_audit_report.md", "risk_graph.svg")
    )
    page = Page()
    page.feed(html)
    return page, html, markdown, svg


def unfenced(markdown: str) -> str:
    """Markdown without its fenced blocks and code spans: what a renderer would treat as markup."""
    lines, fence = [], ""
    for line in markdown.split("\n"):
        found = re.match(r"(`{3,})(text)?$", line)
        if fence:
            fence = "" if found and found[2] is None and len(found[1]) >= len(fence) else fence
        elif found and found[2]:
            fence = found[1]
        else:
            lines.append(line)
    assert not fence, "a fence stays open"
    return re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(lines))


def test_every_link_lands(make_case: Make, tmp_path: Path) -> None:
    page, _, markdown, _ = written(*make_case(), tmp_path / "out")
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len([link for link in page.links if link.startswith("#m-")]) >= 8
    anchors = set(re.findall(r'<a id="([^"]+)"></a>', markdown))
    assert set(re.findall(r"\]\(#([^)]+)\)", markdown)) <= anchors


def test_the_page_loads_nothing_and_allows_only_its_own_style(make_case: Make, tmp_path: Path) -> None:
    page, html, _, svg = written(*make_case(), tmp_path / "out")
    assert all(link.startswith("#") for link in page.links)
    assert "script" not in page.tags
    assert "style" not in page.attributes
    assert not {name for name in page.attributes if name.startswith("on")}
    assert re.search(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='", html.replace("&#39;", "'"))
    assert "url(" not in html + svg


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_stays_text(make_case: Make, tmp_path: Path, payload: str) -> None:
    innocent, _, plain_markdown, _ = written(*make_case("x"), tmp_path / "innocent")
    page, html, markdown, svg = written(*make_case(payload), tmp_path / "hostile")
    assert page.tags == innocent.tags, "the payload made or lost an element"
    assert page.attributes == innocent.attributes
    ElementTree.fromstring(svg)
    for text in (html, markdown, svg):
        assert visible(text) == text, "an invisible character got through"
    outside = unfenced(markdown)
    assert outside.count("\n# ") == unfenced(plain_markdown).count("\n# ")
    assert not re.search(r"(?<!\\)<(?!a id=\"[a-z0-9-]+\"></a>|/a>)[a-z/!?]", outside)
    assert not re.search(r"(?i)https?://|www\.|(?<![`\\])@\w|(?<!\\)\]\((?!#|risk_graph)", outside)
    assert len(outside.split("\n")) == len(unfenced(plain_markdown).split("\n"))


def test_a_quote_is_printed_verbatim(make_case: Make, tmp_path: Path) -> None:
    text = "if a < b && c > 'd': print(\"<b>\")"
    page, _, markdown, _ = written(*make_case(text), tmp_path / "out")
    assert any(text in data for data in page.text)
    assert text in markdown


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
        assert "Distress codes" in text
        assert "Epistemic drift" in text
        assert "Adversarial Compliance" in text
        assert "Psychogenic Harm" in text
        assert "export.jsonl:9" in text


def test_how_sure_a_finding_is_is_told_in_words(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    sure = {"chance": 0.004, "shuffles": (3, 999), "q": 0.04, "stability": 0.94, "replicas": 50}
    findings = tuple(msgspec.structs.replace(each, **sure) for each in case.findings)
    parameters = case.parameters | {"chance_draws": 999, "chance_family": 400, "chance_tested": 1}
    told = msgspec.structs.replace(case, findings=findings, parameters=parameters)
    page, _, markdown, _ = written(told, rows, tmp_path / "out")
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


def test_sessions_come_worst_first(make_case: Make, tmp_path: Path) -> None:
    _, _, markdown, _ = written(*make_case(), tmp_path / "out")
    assert re.findall(r"### Session `(\w+)`", markdown) == ["work", "forum", "quiet"]


def test_quotes_are_marked_in_the_full_message(make_case: Make, tmp_path: Path) -> None:
    _, html, _, _ = written(*make_case(), tmp_path / "out")
    assert "<mark>Send me your access key tonight.</mark> If you hesitate" in html


def test_words_that_do_not_stand_in_the_message_are_not_printed_as_a_quote(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    false = Quote(message_id="forum-0", text="I will ruin you", start=0, end=15, sha256="0" * 64)
    finding = msgspec.structs.replace(case.findings[0], quotes=(false,))
    page, _, markdown, _ = written(msgspec.structs.replace(case, findings=(finding,)), rows, tmp_path / "out")
    assert "I will ruin you" not in markdown + "".join(page.text)


def test_a_message_that_the_case_does_not_hold_is_named_and_not_linked(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    page, _, markdown, _ = written(msgspec.structs.replace(case, cited=()), rows, tmp_path / "out")
    assert "not held in this report" in markdown
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_same_message_id_in_two_conversations_links_to_the_right_one(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    twin = msgspec.structs.replace(case.cited[0], conversation="another", text="the wrong words")
    page, _, _, _ = written(msgspec.structs.replace(case, cited=(twin, *case.cited)), rows, tmp_path / "out")
    assert "the wrong words" not in "".join(page.text)


def test_many_findings_are_capped_in_words_and_complete_in_the_data(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    many = tuple(msgspec.structs.replace(case.findings[0], finding_id=f"{number:064x}") for number in range(230))
    _, html, markdown, _ = written(msgspec.structs.replace(case, findings=many), rows, tmp_path / "out")
    assert "The first 200 of 230 are told in full; findings.jsonl holds all." in html
    assert "The first 200 of 230 are told in full; findings.jsonl holds all." in markdown
    assert len((tmp_path / "out" / "findings.jsonl").read_bytes().splitlines()) == 230


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
    assert "<title>turn 3: minus 20 points, consistent with false promise</title>" in html


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], ""), ([100, 0], "█▁"), ([100, 60, 59], "█▅▅"), ([100] * 120, "█" * 60), ([100] * 119 + [0], "█" * 59 + "▁")],
)
def test_a_sparkline_keeps_the_lowest_of_each_stretch(values: list[int], expected: str) -> None:
    assert sparkline(values) == expected


@given(st.text())
def test_no_text_closes_its_fence(text: str) -> None:
    opening, *body, closing = fenced(text).split("\n")
    fence = opening.removesuffix("text")
    assert closing == fence
    assert not any(fence in line for line in body)


@given(st.text())
def test_no_name_leaves_its_code_span(text: str) -> None:
    span = code(text)
    ticks = re.match("`+", span)
    assert ticks
    assert ticks[0] not in span[len(ticks[0]) : -len(ticks[0])].replace(" ", "x").split(ticks[0] + "`")[0]
    assert "|" not in span
    assert "\n" not in span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5 of 100 (assessed 1 of 4)", "12.5 of 100 (assessed 1 of 4)"),
        ("1. first", "1\\. first"),
        ("- x", "\\- x"),
        ("a_b *c*", "a\\_b \\*c\\*"),
        ("see https://x.example", "see https:\\//x.example"),
        ("www.x.example", "www\\.x.example"),
        ("me@x.example", "me`@`x.example"),
    ],
)
def test_a_sentence_in_markdown_is_only_a_sentence(text: str, expected: str) -> None:
    assert plain(text) == expected


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
    first = "Turns consistent with a known harm took points: false promise (same hash) 1 time in 1 session."
    html = " ".join(" ".join(page.text).split())
    assert html.index(first) < html.index(
        "No sequence of messages matches any of the 1 pattern that could be looked for."
    )
    assert plain(first) == markdown.split("## Verdict\n\n")[1].split("\n")[0]
    assert "1 time points were taken" in html
    assert "8 answers of the judge, kept ones included" in html


def test_a_session_is_shown_by_its_title_and_its_id(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    sessions = tuple(msgspec.structs.replace(each, title="Rows | *and* <b>prices</b>") for each in case.sessions)
    page, html, markdown, svg = written(msgspec.structs.replace(case, sessions=sessions), rows, tmp_path / "out")
    assert "“Rows | *and* <b>prices</b>”" in "".join(page.text)
    assert "“Rows \\| \\*and\\* \\<b\\>prices\\</b\\>” `work`" in markdown
    assert "Rows | *and* &lt;b&gt;prices&lt;/b&gt;" in svg
    assert "<b>prices" not in html + svg


def test_what_is_left_out_of_a_quote_stands_on_a_line_of_its_own(make_case: Make, tmp_path: Path) -> None:
    _, html, _, _ = written(*make_case(), tmp_path / "out")
    assert '<span class="cut" aria-label="text left out before">[…]</span>```python\ndef total' in html
    assert re.search(r"\.cut \{ display: block;", html)


def test_repeats_of_one_episode_and_of_one_flag_are_folded_into_a_line(tmp_path: Path) -> None:
    case, rows = stuck(59)
    page, _, markdown, _ = written(case, rows, tmp_path / "out")
    html = " ".join(" ".join(page.text).split())
    again = "The same again 58 times, 58 turns from 3 to 117, points taken each time. Read: "
    spiral = "Death Spiral: dev repeats “the very same words again”, counted up to 59 times, 59 turns from 1 to 117"
    for text in (html, markdown):
        assert again in text
        assert spiral in text
        assert "High Deference: dev, 1 apology to 0 corrections" in text
        assert "Thread signal escalation on deception: dev, turns 1, 3" in text
    assert len(markdown.split("\n")) < 600
    assert set(re.findall(r"\]\(#([^)]+)\)", markdown)) <= set(re.findall(r'<a id="([^"]+)"></a>', markdown))


def stuck(times: int) -> tuple[Case, list[Row]]:
    """One unchanged code, called fixed in every second turn."""
    texts = tuple(text for _ in range(times) for text in ("Still wrong.", f"Fixed!\n{CODE}"))
    said = messages("stuck", texts, ("user", "dev"), "user")
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
        for message in said[1::2]
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
        for message in said
    ]
    verdict = SessionVerdict(
        conversation="stuck",
        score=0,
        psychogenic_risk=True,
        mechanisms=(),
        deductions=taken,
        turns=tuple((message.position, 0) for message in said),
        flags=("Death Spiral", "High Deference"),
    )
    return Case(version="0.1.0", parameters={}, sessions=(verdict,), cited=said), rows


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
