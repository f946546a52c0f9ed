"""The commands that a report names, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from undersong.core.sanitize import one_line
from undersong.models import Case
from undersong.report.sequence_words import reading_options

INPUTS, NAME = 3, 80  # names of inputs, and characters of each


def input_names(case: Case) -> str:
    """The names of the first inputs, quoted, and an ellipsis where there are more."""
    names = [shlex.quote(one_line(each.name, NAME)) for each in case.inputs[:INPUTS]]
    return " ".join(names + ["…"] * (len(case.inputs) > INPUTS))


def again_command(case: Case) -> str:
    """What makes the same report from the same inputs, run beside them."""
    judge, seed = judge_option(case.parameters), one_line(str(case.parameters.get("seed", 0)), 20)
    options = f"{_map_option(case.parameters)}{reading_options(case.parameters)}"
    return f"undersong audit {input_names(case)} --judge {shlex.quote(one_line(judge, 300))}{options} --seed {seed}"


def _map_option(parameters: Mapping[str, Any]) -> str:
    """The keys that stood for ours in the input, as ``--map`` takes them, with a space before; "" for none."""
    fields = parameters.get("fields") or {}
    pairs = ",".join(one_line(f"{ours}={theirs}", NAME) for theirs, ours in fields.items())
    return f" --map {shlex.quote(pairs)}" if pairs else ""


def verify_command(case: Case) -> str:
    """What checks a report against its inputs; DIR and HEX are its folder and digest."""
    return f"undersong verify DIR {input_names(case)} --digest HEX"


def judge_option(parameters: Mapping[str, Any]) -> str:
    """What follows ``--judge`` to have the same judge again; of a model of one's own the folder, without the way to it.

    >>> judge_option({"judge": "offline", "judge_folder": "ours"})
    'offline:ours'
    """
    folder = parameters.get("judge_folder")
    return f"{parameters.get('judge', '')}:{folder}" if folder else str(parameters.get("judge", ""))
