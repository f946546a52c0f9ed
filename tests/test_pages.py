"""The pages of docs/: their links lead somewhere, and they name every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_links_of_a_page_lead_to_files(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_command_has_its_row() -> None:
    from undersong.cli import VERBS

    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f"`undersong {verb}" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_says_first_who_it_is_for(page: Path) -> None:
    if page.name != "index.md" and page.parent.name != "_generated":
        heading, opening, *_ = page.read_text(encoding="utf-8").split("\n\n")
        assert heading.startswith("# ")
        assert opening.startswith("For ")
