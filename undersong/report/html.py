"""Self-contained HTML pages: nothing is loaded from anywhere, every foreign character is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from undersong.models import LEVELS
from undersong.report import months
from undersong.report.page import environment, own_text
from undersong.report.view import ReportView
from undersong.wording import (
    alignment_colour,
    alignment_words,
    assessed_words,
    context_words,
    mechanism_name,
    score_words,
    to_read_words,
)

INDEX = "index.html"


def render(shown: ReportView) -> str:
    """``report.html``; its style and its script are allowed by hash, so that nothing else in it can style or run."""
    return _page("report.html.j2", shown, unplaced=shown.citations.unplaced())


def render_pages(shown: ReportView) -> Iterator[tuple[str, str]]:
    """Names and texts of the pages beside the report: further transcripts, and an index where there are sessions."""
    for number, (name, parts) in enumerate(shown.pages, 2):
        yield name, _page("page.html.j2", shown, parts=parts, number=number)
    if len(shown.case.sessions) > 1:
        yield INDEX, _page("index.html.j2", shown)


def _page(template: str, shown: ReportView, **more: Any) -> str:
    style = "\n" + "".join(own_text(name) for name in ("colours.css", "page.css", "chart.css"))
    script = own_text("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hashed(style)}'; script-src '{_hashed(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        environment()
        .get_template(template)
        .render(
            v=shown,
            case=shown.case,
            tally=shown.tally,
            words=shown.words,
            levels=LEVELS,
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            bars=months.bars(shown.months),
            months_size={"width": months.WIDTH, "height": months.HEIGHT, "left": months.LEFT, "top": months.TOP},
            alignment_colour=alignment_colour,
            alignment_words=alignment_words,
            to_read_words=to_read_words,
            score_words=score_words,
            assessed_words=assessed_words,
            context_words=context_words,
            mechanism_name=mechanism_name,
            **more,
        )
    )


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
