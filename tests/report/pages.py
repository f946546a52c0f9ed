"""Report pages, read back: ids, links, tags and texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from tests.report.conftest import talks
from undersong.models import Case, Row
from undersong.report.writer import write


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


def written(case: Case, rows: list[Row], folder: Path, *, transcripts: bool = False) -> tuple[Page, str, str, str]:
    """The HTML parsed, and three texts, Markdown with its details; ``transcripts``: those of the cited messages."""
    write(case, rows, folder, conversations=talks(case).get if transcripts else None)
    html, markdown, svg = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("report.html", "forensic_audit_report.md", "risk_graph.svg")
    )
    markdown += (folder / "details.md").read_text(encoding="utf-8")
    page = Page()
    page.feed(html)
    return page, html, markdown, svg


def unfenced(markdown: str) -> str:
    """Markdown without its fenced blocks and code spans: what a renderer would treat as markup."""
    lines, fence = [], ""
    for line in markdown.split("\n"):
        fence_line = re.match(r"(`{3,})(text)?$", line)
        if fence:
            fence = "" if fence_line and fence_line[2] is None and len(fence_line[1]) >= len(fence) else fence
        elif fence_line and fence_line[2]:
            fence = fence_line[1]
        else:
            lines.append(line)
    assert not fence, "a fence stays open"
    return re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(lines))
