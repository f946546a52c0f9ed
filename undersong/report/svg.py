"""The sibling picture of the Markdown report: the charts of the worst sessions, one under the other."""

from __future__ import annotations

from markupsafe import Markup

from undersong.report.page import environment, own_text
from undersong.report.view import ReportView

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
