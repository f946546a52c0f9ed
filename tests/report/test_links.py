"""Links, quotes and anchors: every claim leads to its message, and nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from tests.report.pages import written
from undersong.models import Case, Row

Make = Callable[..., tuple[Case, list[Row]]]


def test_every_link_lands(make_case: Make, tmp_path: Path) -> None:
    page, _, markdown, _ = written(*make_case(), tmp_path / "out")
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert len([link for link in page.links if link.startswith("#m-")]) >= 8
    anchors = set(re.findall(r'<a id="([^"]+)"></a>', markdown))
    assert set(re.findall(r"\]\(#([^)]+)\)", markdown)) <= anchors


def test_the_page_loads_nothing_and_allows_only_its_own_style_and_script(make_case: Make, tmp_path: Path) -> None:
    page, html, _, svg = written(*make_case(), tmp_path / "out")
    assert all(link.startswith("#") for link in page.links)
    assert page.tags.count("script") == 1
    assert "style" not in page.attributes
    assert not {name for name in page.attributes if name.startswith("on")}
    policy = re.search(r'content="(default-src[^"]*)"', html.replace("&#39;", "'"))
    assert policy
    hashes = r"style-src 'sha256-[A-Za-z0-9+/]{43}='; script-src 'sha256-[A-Za-z0-9+/]{43}='"
    assert re.fullmatch(rf"default-src 'none'; {hashes}; base-uri 'none'; form-action 'none'", policy[1])
    assert "url(" not in html + svg


def test_quotes_are_marked_in_the_full_message(make_case: Make, tmp_path: Path) -> None:
    _, html, _, _ = written(*make_case(), tmp_path / "out")
    assert "<mark>Send me your access key tonight.</mark> If you hesitate" in html


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


def test_what_is_left_out_of_a_quote_stands_on_a_line_of_its_own(make_case: Make, tmp_path: Path) -> None:
    _, html, _, _ = written(*make_case(), tmp_path / "out")
    assert '<span class="cut" aria-label="text left out before">[…]</span>```python\ndef total' in html
    assert re.search(r"\.cut \{ display: block;", html)
