"""The template environment: everything escaped, nothing undefined, foreign text made visible."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from undersong.core.hashing import text_hash
from undersong.core.text import counted, mechanism_name
from undersong.models import LEVELS
from undersong.report import view_model
from undersong.report.escape import first_upper, label, moment, own_name, period, shown
from undersong.report.narrative import (
    alignment_colour,
    alignment_words,
    assessed_words,
    context_words,
    score_words,
    to_read_words,
)
from undersong.report.view_model import ReportView

TEMPLATES = Path(__file__).parents[1] / "templates"


@cache
def environment() -> jinja2.Environment:
    """Autoescape is on for every template; no template of ours switches it off for data."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"line": label, "shown": shown, "moment": moment, "first_upper": first_upper, "sha256": text_hash}
    made.globals |= {"counted": counted, "period": period, "own_name": own_name}
    return made


@cache
def own_text(name: str) -> str:
    """A file of our own beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


CHARTS = 12  # sessions in the picture; the others have their table and sparkline
HEAD, GAP, MARGIN = 34.0, 18.0, 12.0
EXTRA = ".paper{fill:var(--paper)} text.name{font-weight:600;font-size:14px;fill:var(--ink)}"


def render_charts(shown: ReportView) -> str:
    """``risk_graph.svg``: no script, no load from anywhere, light and dark."""
    y, placed = MARGIN, []
    for session in [each for each in shown.sessions if each.chart.turns][:CHARTS]:
        y += HEAD
        placed.append((session.verdict.title or session.verdict.conversation, y, session.chart))
        y += session.chart.height + GAP
    style = Markup(own_text("colours.css") + own_text("chart.css") + EXTRA)
    width = placed[0][2].width + MARGIN if placed else 320
    template = environment().get_template("risk_graph.svg.j2")
    return template.render(charts=placed, width=width, height=round(y + HEAD, 2), style=style)


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
            bars=view_model.bars(shown.months),
            months_size={
                "width": view_model.WIDTH,
                "height": view_model.HEIGHT,
                "left": view_model.LEFT,
                "top": view_model.TOP,
            },
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
