"""A reader's browser: links land, filters work, hostile text stays text, paper keeps the graph."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pypdf import PdfReader

from tests.browser.conftest import Tab
from tests.report.conftest import build, talks, with_moments
from tests.report.payloads import TWO_HUNDRED
from undersong.models import Case, Conversation, Message, Moment, SessionVerdict
from undersong.report import transcript_view
from undersong.report.writer import write

EXPECTED_TAGS = "img,iframe,object,embed,base,link,math,video,audio,form:not(#filters),h1:nth-of-type(n+2)"
LANDED = """id => {
  const target = document.getElementById(id);
  if (!target) return "no such element";
  const box = target.getBoundingClientRect();
  if (!box.width || !box.height) return "not visible";
  return box.bottom < 0 || box.top > innerHeight ? "out of sight" : "";
}"""
CONTRAST = """() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = parts => parts.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = box => {
    for (; box; box = box.parentElement) {
      const colour = numbers(getComputedStyle(box).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = new Set();
  document.querySelectorAll("details").forEach(box => { box.open = true; });
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const paint = element.closest("svg") ? style.fill : style.color;
    const [one, two] = [light(numbers(paint)), light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName}.${element.getAttribute("class")} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


def written_report(tab: Tab) -> Tab:
    """A report of three sessions of eight turns together."""
    case, rows = build()
    case = with_moments(case)
    write(case, rows, tab.folder, conversations=talks(case).get)
    return tab


@pytest.fixture
def report(tab: Tab) -> Tab:
    """A report whose transcripts stand in it."""
    return written_report(tab)


@pytest.fixture
def paged(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> Tab:
    """A report whose conversations have pages of their own."""
    monkeypatch.setattr(transcript_view, "HERE", 6)
    return written_report(tab)


def hrefs(tab: Tab) -> Iterator[tuple[str, str]]:
    """Every page of the report and every distinct link on it."""
    for path in sorted(tab.folder.glob("*.html")):
        links = tab.open(path.name).eval_on_selector_all("a[href]", "all => all.map(a => a.getAttribute('href'))")
        yield from ((path.name, href) for href in dict.fromkeys(links))


def test_every_link_lands_where_it_can_be_seen(paged: Tab) -> None:
    report = paged
    links = list(hrefs(report))
    pages = {f"conversation-{number}.html" for number in (1, 2)}
    assert {name for name, _ in links} == {"index.html", "report.html", *pages}
    assert len([href for _, href in links if "#m-" in href]) >= 6
    assert any(href.startswith("conversation-2.html#m-") for _, href in links)
    for name, href in links:
        page = report.open(name)
        # the click comes after this call has its answer, which a navigation could take away
        click = "href => { setTimeout(() => document.querySelector(`a[href='${href}']`).click()); }"
        with nullcontext() if href.startswith("#") else page.expect_navigation():
            page.evaluate(click, href)
        if "#" in href:
            anchor = href.split("#")[1]
            page.wait_for_function(f"id => !({LANDED})(id)", arg=anchor)
            assert page.evaluate(LANDED, anchor) == "", (name, href)


def shown(tab: Tab) -> int:
    """How many entries and turns are not filtered out."""
    return int(tab.page.evaluate("document.querySelectorAll('[data-f]:not([hidden])').length"))


def test_filters_by_agent_kind_and_level(report: Tab) -> None:
    page = report.open()
    everything = shown(report)
    page.select_option("select[name=a]", label="kira")
    assert page.evaluate("[...document.querySelectorAll('.turn:not([hidden]) .who b')].map(b => b.textContent)") == (
        ["kira"] * 4
    )
    assert f"of {everything} entries and turns shown" in page.inner_text("#shown")
    page.select_option("select[name=k]", label="false promise")
    assert shown(report) == 0
    page.select_option("select[name=a]", label="everybody")
    assert shown(report) >= 2
    page.select_option("select[name=k]", label="every kind")
    page.select_option("select[name=l]", label="critical")
    assert shown(report) == 0
    page.click("#clear")
    assert shown(report) == everything
    assert page.inner_text("#shown") == "Everything is shown."


def test_a_link_to_a_turn_that_is_filtered_out_brings_it_back(report: Tab) -> None:
    page = report.open()
    turn = page.evaluate("document.querySelector('.turn[data-a]').id")
    page.select_option("select[name=l]", label="critical")
    assert not page.is_visible(f"#{turn}")
    page.evaluate("id => { location.hash = id; }", turn)
    page.wait_for_selector(f"#{turn}", state="visible")


def test_folds_open_for_the_keyboard_and_the_first_stop_is_the_verdict(report: Tab) -> None:
    page = report.open()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#first'")
    fold = page.locator("details.print > summary").first
    fold.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details.print').open")


def test_two_hundred_payloads_stay_text(tab: Tab) -> None:
    messages = tuple(
        Message(
            id=f"m{number} {payload}", conversation=f"talk {TWO_HUNDRED[0]}", position=number, author=payload[:80],
            agent=payload, role="assistant", text=payload,
        )
        for number, payload in enumerate(TWO_HUNDRED)
    )  # fmt: skip
    moments = tuple(
        Moment(
            kind="smoking_gun", code="fault_admission", title="Admission of fault", message_id=each.id,
            position=each.position, agent=each.agent, explanation=each.text, basis="words",
        )
        for each in messages
    )  # fmt: skip
    name = messages[0].conversation
    verdict = SessionVerdict(
        conversation=name, score=None, psychogenic_risk=None, mechanisms=(), title=TWO_HUNDRED[1], moments=moments,
        flags=tuple(TWO_HUNDRED[:20]),
    )  # fmt: skip
    other = SessionVerdict(conversation=TWO_HUNDRED[4], score=None, psychogenic_risk=None, mechanisms=())
    case = Case(version="0.1.0", parameters={"judge": TWO_HUNDRED[2]}, sessions=(verdict, other), cited=messages)
    talk = Conversation(id=name, source_format="jsonl", messages=messages, title=TWO_HUNDRED[3])
    write(case, [], tab.folder, conversations={name: talk}.get)
    for path in tab.folder.glob("*.html"):
        page = tab.open(path.name)
        page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
        page.wait_for_timeout(200)
        assert page.evaluate(f"document.querySelectorAll({EXPECTED_TAGS!r}).length") == 0
        assert page.evaluate("document.querySelectorAll('body script').length") == (path.name != "index.html")
        on = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
        assert page.evaluate(on) == []
    shown = tab.open("conversation-1.html").evaluate(
        "[...document.querySelectorAll('.turn blockquote')].map(b => b.textContent)"
    )
    assert len(shown) == 200
    assert "<script>alert(1)</script>" in shown


def test_paper_keeps_the_graph(report: Tab) -> None:
    page = report.open()
    paper = PdfReader(io.BytesIO(page.pdf(format="A4", print_background=True)))
    text = "\n".join(sheet.extract_text() for sheet in paper.pages)
    graph = [number for number, sheet in enumerate(paper.pages) if "sovereignty score" in sheet.extract_text()]
    assert "what stands there" in text, "the table behind the graph is not printed"
    assert "show all" not in text, "the filters are printed"
    assert graph
    drawn = b"".join(paper.pages[number].get_contents().get_data() for number in graph)  # type: ignore[union-attr]
    assert drawn.count(b" l\n") + drawn.count(b" c\n") > 20, "no line of the graph is drawn"


@pytest.mark.parametrize("tab", ["light", "dark"], indirect=True)
def test_every_text_stands_out_from_what_is_behind_it(paged: Tab) -> None:
    report = paged
    for name in ("report.html", "index.html", "conversation-1.html"):
        assert report.open(name).evaluate(CONTRAST) == [], name


def test_a_talk_of_many_turns_is_folded(tab: Tab) -> None:
    messages = tuple(
        Message(
            id=f"m{n}",
            conversation="c",
            position=n,
            author="kira",
            agent="kira",
            role="agent",
            text="so it goes " * (1 + 40 * (n % 3)),
        )
        for n in range(250)
    )
    verdict = SessionVerdict(conversation="c", score=None, psychogenic_risk=None, mechanisms=())
    case = Case(version="0.1.0", parameters={}, sessions=(verdict,))
    talk = Conversation(id="c", source_format="jsonl", messages=messages)
    write(case, [], tab.folder, conversations={"c": talk}.get)
    page = tab.open("conversation-1.html")
    folds = page.eval_on_selector_all(
        "details.fold", "all => all.map(f => [f.open, f.querySelector('summary').innerText])"
    )
    assert folds == [[True, "turns 1 to 100"], [False, "turns 101 to 200"], [False, "turns 201 to 250"]]
    last = page.evaluate("[...document.querySelectorAll('.turn')].at(-1).id")
    page.evaluate("id => { location.hash = id; }", last)
    page.wait_for_function(f"id => !({LANDED})(id)", arg=last)
    middle = page.evaluate("document.querySelectorAll('.turn')[149].id")  # in a fold that is closed
    page.evaluate("id => { location.hash = id; }", middle)
    page.wait_for_function("id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 40", arg=middle)
    page.wait_for_timeout(400)  # what comes into view later moves nothing
    assert abs(page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", middle)) < 40


def test_the_files_are_those_of_the_folder(paged: Tab) -> None:
    names = {path.name for path in Path(paged.folder).iterdir()}
    assert {"report.html", "index.html", "conversation-1.html", "conversations.jsonl"} <= names
