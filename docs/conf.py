"""The documentation site: `python3 make.py docs` builds it from these pages, the command line and the docstrings."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

import undersong
from undersong.cli.schemas import write_schemas
from undersong.judges import limits
from undersong.judges.llm.budget import Budget
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.pipeline import options

HERE = Path(__file__).parent
GENERATED = HERE / "_generated"

project = "undersong"
author = "The undersong developers"
release = version = undersong.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["_build"]
man_pages = [("command-line", "undersong", "find in conversations what no single message shows", author, 1)]
html_theme = "furo"
html_title = f"undersong {release}"
html_static_path: list[str] = []
html_extra_path = ["_generated/extra"]
html_show_sourcelink = False
smartquotes = False  # two dashes are an option here
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
suppress_warnings = [
    "myst.xref_missing",  # links to files of the repository that are no pages; tests/test_pages.py follows them
    "misc.highlighting_failure",  # parameters of Cypher
]
vars(options)["PatternRule"], vars(limits)["Budget"] = PatternRule, Budget  # of annotations, for type checkers alone


def write_rule_catalog() -> None:
    """The page with every rule that ships, from the rules themselves."""
    GENERATED.mkdir(exist_ok=True)
    lines = [
        "# The rules that ship",
        "",
        "For readers of a report who want to know what a name in it stands for. `undersong rules show ID` has the",
        "whole rule; [how rules are written](../rules.md).",
        "",
    ]
    for rule in sorted(all_rules(), key=lambda one: one.id):
        file = rule.file
        words = (file.description or "").strip()
        lines += [f"## {rule.id}", "", f"**{file.title}**, level {file.level}", "", words, ""]
    (GENERATED / "rule-catalog.md").write_text("\n".join(lines), encoding="utf-8")


write_rule_catalog()
write_schemas(GENERATED / "extra" / "schemas")
shutil.copy(HERE / "notebook.ipynb", GENERATED / "extra")


def setup(app: Sphinx) -> None:
    """JSON Lines are shown as JSON, examples below a command as they stand on a terminal."""
    app.add_lexer("jsonl", JsonLexer)
    app.connect("sphinx-click-process-epilog", as_literal)


def as_literal(app: Sphinx, ctx: click.Context, lines: list[str]) -> None:  # noqa: ARG001 - Sphinx's signature
    """Make the examples below a command a literal block."""
    shown = [line.removeprefix("| ") for line in lines if line.strip(" |\b")]
    if shown:
        lines[:] = ["Examples:", "", ".. code-block:: text", "", *(f"   {line}" for line in shown[1:]), ""]
