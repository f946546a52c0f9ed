"""One self-contained HTML page: no script, no load from anywhere, every foreign character escaped."""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from undersong.report.page import environment, own_text
from undersong.report.view import View
from undersong.wording import (
    alignment_colour,
    alignment_words,
    assessed_words,
    context_words,
    mechanism_name,
    score_words,
)


def render(shown: View) -> str:
    """``report.html``; its style is allowed by hash, so that nothing else in the page can style or run."""
    style = "\n" + "".join(own_text(name) for name in ("colours.css", "page.css", "chart.css"))
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            v=shown,
            case=shown.case,
            tally=shown.tally,
            words=shown.words,
            policy=policy,
            style=Markup(style),
            alignment_colour=alignment_colour,
            alignment_words=alignment_words,
            score_words=score_words,
            assessed_words=assessed_words,
            context_words=context_words,
            mechanism_name=mechanism_name,
        )
    )
