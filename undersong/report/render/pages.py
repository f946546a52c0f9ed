"""The pages of a report from templates: HTML, Markdown, and SVG charts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from undersong.core.text import counted, mechanism_name, text_hash, turn_number
from undersong.models import LEVELS
from undersong.report import (
    alignment_words,
    claims_view,
    commands,
    decision_words,
    escape,
    headline,
    narrative,
    private_talk,
    project_lines,
    sequence_words,
    session_answer,
    view_model,
    work_view,
)
from undersong.report.message_times import MessageTimes
from undersong.report.opening_sentences import sentences
from undersong.report.render.template_cache import TemplateCache
from undersong.report.view_model import ReportView

TEMPLATES = Path(__file__).parents[1] / "templates"
INDEX, DETAILS = "index.html", "details.md"
CHARTS = 12  # sessions in the picture; the others have their table and sparkline
HEAD, GAP, MARGIN = 34.0, 18.0, 12.0
EXTRA = ".paper{fill:var(--paper)} text.name{font-weight:600;font-size:14px;fill:var(--ink)}"


@jinja2.pass_context
def moment(context: jinja2.runtime.Context, time: datetime | None) -> str:
    """A message time, with a zone where the inputs of the case have one."""
    return escape.moment(time, zone=_have_zones(context))


@jinja2.pass_context
def period(context: jinja2.runtime.Context, first: datetime | None, last: datetime | None) -> str:
    """From the first to the last message time, in the same way."""
    return escape.period(first, last, zone=_have_zones(context))


def _have_zones(context: jinja2.runtime.Context) -> bool:
    return MessageTimes(context["case"]).have_zones


@cache
def environment() -> jinja2.Environment:
    """The template environment; autoescape is on for every template, and none switches it off for data."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"line": escape.label, "shown": escape.shown, "moment": moment, "sha256": text_hash}
    made.filters |= {"first_upper": escape.first_upper, "turn": turn_number}
    functions = (
        claims_view.against, decision_words.decision_words,
        counted, mechanism_name, escape.own_name, period, headline.coverage, headline.findings_words,
        headline.headline, headline.mechanism_gaps, alignment_words.alignment_colour, alignment_words.alignment_words,
        narrative.assessed_words, narrative.context_words, narrative.cost_words, narrative.gaps_words,
        private_talk.is_graded, private_talk.shown_mechanisms,
        commands.again_command, commands.verify_command,
        narrative.judge_words, narrative.kind_words, narrative.missed_words,
        narrative.not_applicable_words, narrative.outcome_words, sequence_words.looked_for_words,
        sequence_words.rules_words,
        session_answer.lowest_score, session_answer.score_cell, session_answer.session_answer,
        project_lines.project_name, narrative.to_read_words,
        view_model.agreement_table, work_view.duration_words,
    )  # fmt: skip
    made.globals |= {function.__name__: function for function in functions}
    made.globals["levels"] = LEVELS
    made.bytecode_cache = TemplateCache("html", made.filters.values())
    return made


@cache
def markdown_environment() -> jinja2.Environment:
    """The same with Markdown escaping: what a template prints is escaped by ``plain`` unless a filter made it safe.

    ``code``, in tables ``cell``, and ``fenced`` are for foreign text, ``own`` for our own words that are Markdown.
    """
    made = environment().overlay(finalize=_markdown, keep_trailing_newline=True)
    made.filters = made.filters | {
        "plain": lambda text: Markup(escape.plain(text)),
        "cell": lambda text, width=escape.LABEL: Markup(escape.cell(text, width)),
        "code": lambda text, width=escape.LABEL: Markup(escape.code(text, width)),
        "fenced": lambda text: Markup(escape.fenced(text)),
        "own": Markup,
        "label": escape.label,
        "sparkline": escape.sparkline,
    }
    made.bytecode_cache = TemplateCache("markdown", made.filters.values())
    return made


def _markdown(value: Any) -> Any:
    """What is printed for a value in a Markdown template; autoescape leaves ``Markup`` as it is."""
    return Markup(escape.plain(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def own_text(name: str) -> str:
    """A file of our own beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def render_charts(shown: ReportView) -> str:
    """``risk_graph.svg``: no script, no load from anywhere, light and dark."""
    y, placed = MARGIN, []
    for session in [each for each in shown.sessions if each.chart.turns][:CHARTS]:
        y += HEAD
        placed.append((session.verdict.title or session.verdict.conversation, y, session.chart))
        y += session.chart.height + GAP
    style = Markup(own_text("colours.css") + own_text("chart.css") + EXTRA)
    width = placed[0][2].width + MARGIN if placed else 320
    template, noun = environment().get_template("risk_graph.svg.j2"), narrative.place_noun(shown.case.sessions)
    return template.render(
        score_name=narrative.score_name(shown.case.sessions),
        charts=placed,
        noun=noun,
        nouns=f"{noun}s",
        width=width,
        height=round(y + HEAD, 2),
        style=style,
    )


def render_markdown(shown: ReportView) -> str:
    """``forensic_audit_report.md``, short: names in code spans, quotes in fences that they cannot close."""
    return _rendered(markdown_environment(), "report.md.j2", shown, details=DETAILS)


def render_details(shown: ReportView) -> str:
    """``details.md``: the whole record, to which the short Markdown report links."""
    return _rendered(markdown_environment(), "details.md.j2", shown, details="")


def render_work(shown: ReportView) -> str:
    """``work.md``: one page on the work of coding agents."""
    return _rendered(markdown_environment(), "work.md.j2", shown)


def render_html(shown: ReportView) -> str:
    """``report.html``; its style and its script are allowed by hash, so that nothing else in it can style or run."""
    return _page("report.html.j2", shown, unplaced=shown.citations.unplaced())


def render_pages(shown: ReportView) -> Iterator[tuple[str, str]]:
    """Names and texts of the pages beside the report: further transcripts, and an index where there are sessions."""
    for number, (name, parts) in enumerate(shown.pages, 1):
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
    return _rendered(environment(), template, shown, policy=policy, style=Markup(style), script=Markup(script), **more)


def _rendered(made: jinja2.Environment, template: str, shown: ReportView, **more: Any) -> str:
    noun = narrative.place_noun(shown.case.sessions)
    return made.get_template(template).render(
        v=shown,
        case=shown.case,
        tally=shown.tally,
        words=shown.words,
        score_name=narrative.score_name(shown.case.sessions),
        noun=noun,
        nouns=f"{noun}s",
        states=sentences().states,
        **more,
    )


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
