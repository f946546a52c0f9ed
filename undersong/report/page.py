"""The template environment: everything escaped, nothing undefined, foreign text made visible."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

from undersong.manifest import text_hash
from undersong.report.text import first_upper, label, moment, own_name, period, shown
from undersong.wording import counted

TEMPLATES = Path(__file__).parent / "templates"


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
