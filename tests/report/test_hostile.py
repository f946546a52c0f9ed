"""Hostile text stays text, in every place of every page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tests.report.conftest import with_moments
from tests.report.pages import unfenced, written
from tests.report.payloads import PAYLOADS
from undersong.core.sanitize import visible
from undersong.models import Case, Quote, Row

Make = Callable[..., tuple[Case, list[Row]]]


@pytest.mark.parametrize("transcripts", [False, True], ids=["cited", "transcript"])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_stays_text(make_case: Make, tmp_path: Path, payload: str, transcripts: bool) -> None:
    innocent, _, plain_markdown, _ = written(*moving(make_case("x")), tmp_path / "innocent", transcripts=transcripts)
    page, html, markdown, svg = written(*moving(make_case(payload)), tmp_path / "hostile", transcripts=transcripts)
    assert page.tags == innocent.tags, "the payload made or lost an element"
    assert page.attributes == innocent.attributes
    ElementTree.fromstring(svg)
    for text in (html, markdown, svg):
        assert visible(text) == text, "an invisible character got through"
    outside = unfenced(markdown)
    assert outside.count("\n# ") == unfenced(plain_markdown).count("\n# ")
    assert not re.search(r"(?<!\\)<(?!a id=\"[a-z0-9-]+\"></a>|/a>)[a-z/!?]", FOLDED.sub("", outside))
    assert not re.search(
        r"(?i)https?://|www\.|(?<![`\\])@\w|(?<!\\)\]\((?!#|risk_graph|details\.md|forensic_audit_report\.md)", outside
    )
    assert len(outside.split("\n")) == len(unfenced(plain_markdown).split("\n"))


FOLDED = re.compile(r"^<details><summary>\d+ turns? with a code</summary>$|^</details>$", re.MULTILINE)


def moving(made: tuple[Case, list[Row]]) -> tuple[Case, list[Row]]:
    """The case with its moments."""
    return with_moments(made[0]), made[1]


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
