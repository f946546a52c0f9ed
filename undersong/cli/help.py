"""Help pages: options in sections, examples below, headings that stand out, as wide as the terminal allows."""

from __future__ import annotations

from typing import Any

import click

WIDEST = 110  # columns of a help page; longer lines are hard to read
OTHER = "Other options"
SECTIONS = {  # title → names of parameters, for every command alike; what is in none comes last
    "What is read": (
        "source_format", "fields", "dates", "only", "since", "seed", "budget_share", "recall", "read_all", "follow",
        "poll",
    ),
    "What is looked for": (
        "read", "rules", "folder", "rule", "names", "profile", "thinking", "prevalence", "warn", "signals",
        "group_by",
    ),
    "The judge, and what it may cost": (
        "judge", "budget", "max_calls", "max_failed", "concurrency", "timeout", "batch", "price_in", "price_out",
        "thinking", "no_thinking", "double_check",
    ),
    "How sure a finding is": ("with_chance", "draws", "block", "confidence"),
    "What is written": (
        "out", "store", "add", "no_store", "formats", "otlp", "as_json", "redact", "masked", "names_file", "signer",
        "threads", "text", "processes", "messages",
    ),
    "When to fail": ("fail_on", "fail_confidence", "fail_under", "fail_on_unassessed", "fail_on_unread"),
}  # fmt: skip


class HelpFormatter(click.HelpFormatter):
    """The headings of a help page in bold; click leaves styles out where nobody would see them."""

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        self.write(click.style(f"{'':>{self.current_indent}}{heading}:", bold=True) + "\n")


class HelpContext(click.Context):
    """A context whose help pages are written by HelpFormatter."""

    formatter_class = HelpFormatter


class SectionedCommand(click.Command):
    """A command with many options: its help shows them in SECTIONS."""

    context_class = HelpContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in (*SECTIONS, OTHER)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections[section_of(parameter.name or "")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=34)


def section_of(name: str) -> str:
    """The title of the section of a parameter."""
    return next((title for title, names in SECTIONS.items() if name in names), OTHER)


def examples(*lines: tuple[str, str]) -> dict[str, Any]:
    """The end of a help page: pairs of a command and what it does."""
    width = max(len(command) for command, _ in lines)
    shown = "\n".join(f"  {command:<{width}}  {what}" for command, what in lines)
    return {"epilog": f"\b\nExamples:\n{shown}"}
