"""Hostile text stays text, in every place of every page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tests.report.pages import unfenced, written
from undersong.models import Case, Quote, Row
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


def test_words_that_do_not_stand_in_the_message_are_not_printed_as_a_quote(make_case: Make, tmp_path: Path) -> None:
    case, rows = make_case()
    false = Quote(message_id="forum-0", text="I will ruin you", start=0, end=15, sha256="0" * 64)
    finding = msgspec.structs.replace(case.findings[0], quotes=(false,))
    page, _, markdown, _ = written(msgspec.structs.replace(case, findings=(finding,)), rows, tmp_path / "out")
    assert "I will ruin you" not in markdown + "".join(page.text)
