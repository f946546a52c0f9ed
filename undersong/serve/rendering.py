"""Pages from templates: one environment that escapes everything, one stylesheet, one script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2

from undersong.core.text import counted, mechanism_name, turn_number
from undersong.models import LEVELS, NEGATIVE_TRAITS
from undersong.report import escape
from undersong.report.claims_view import WORDS
from undersong.report.display_names import person_name
from undersong.report.opening_sentences import sentences
from undersong.report.render.pages import TEMPLATES as REPORT_TEMPLATES
from undersong.report.render.pages import own_text
from undersong.report.render.template_cache import TemplateCache
from undersong.report.sureness import short_sure_words, sure_words
from undersong.serve.pattern_words import found_by

HERE = Path(__file__).parent
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
SECTIONS = (
    ("/review", "Review"), ("/findings", "Findings"), ("/leads", "Leads"), ("/agents", "Agents"),
    ("/conversations", "Conversations"), ("/compare", "Compare"), ("/live", "Live"), ("/rules", "Rules"),
    ("/runs", "Runs"),
)  # fmt: skip


@cache
def static_files() -> Mapping[str, bytes]:
    """Name → bytes of what pages load; the style is that of a report with more at its end."""
    report = "".join(own_text(name) for name in ("colours.css", "page.css", "chart.css"))
    files = {path.name: path.read_bytes() for path in sorted((HERE / "static").iterdir())}
    return files | {"serve.css": report.encode() + files["serve.css"]}


def static_address(name: str) -> str:
    """The address of a static file with a hash of its bytes, so that a browser may keep it for good."""
    return f"/static/{hashlib.sha256(static_files()[name]).hexdigest()[:12]}/{name}"


@cache
def environment() -> jinja2.Environment:
    """The templates of the pages; those of reports can be included. Autoescape is on everywhere."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([HERE / "templates", REPORT_TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "line": escape.label,
        "shown": escape.shown,
        "moment": escape.moment,
        "first_upper": escape.first_upper,
        "own": escape.own_name,
        "turn": turn_number,
    }
    functions = (
        address, counted, escape.own_name, escape.period, mechanism_name, person_name, short_sure_words,
        static_address, sure_words, json_text,
    )  # fmt: skip
    made.globals |= {"found_by": found_by}
    made.globals |= {function.__name__: function for function in functions}
    made.globals |= {"levels": LEVELS, "sections": SECTIONS, "negative_traits": NEGATIVE_TRAITS, "claim_words": WORDS}
    made.globals["level_words"] = {
        name: f"how grave it is where it is true: {name}, of {', '.join(LEVELS)}" for name in LEVELS
    }
    made.globals |= {"point_states": sentences().states}
    made.bytecode_cache = TemplateCache("serve", made.filters.values())
    return made


def render(template: str, **values: Any) -> str:
    """A page; ``here`` is the section it belongs to."""
    return environment().get_template(template).render({"here": "", **values})


def address(path: str, *parts: str, **query: Any) -> str:
    """An address within the server: ``path``, then ids of our own, then a query without empty values.

    What is foreign, as the names of agents are, stands in the query: a path may not hold every name.
    """
    values = [(name, value) for name, value in query.items() if value not in (None, "", (), False)]
    tail = urlencode([(name, str(value)) for name, value in values], errors="replace")
    return "/".join((path, *(quote(part, safe="", errors="replace") for part in parts))) + (f"?{tail}" if tail else "")


def json_text(value: Any) -> str:
    """JSON for people: indented, keys as they come."""
    return json.dumps(value, ensure_ascii=False, indent=2)
