"""The commands that a report names, as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
    options = f"{input_options(case.parameters)}{reading_options(case.parameters)}"
    return f"undersong audit {input_names(case)} --judge {shlex.quote(one_line(judge, 300))}{options} --seed {seed}"


def asking_command(case: Case, paths: Sequence[str], read: str, judge: str, more: str = "") -> str:
    """The same audit with another judge and mode; ``paths`` are those of the command, ``more`` its other options."""
    names = [each.name for each in case.inputs]
    targets = list(paths) or (names if len(names) <= INPUTS else [])
    quoted = " ".join(map(shlex.quote, targets)) if targets else "PATH"
    parameters = {**case.parameters, "read": read, "seed": case.parameters.get("seed", 0)}
    seed = f" --seed {one_line(str(parameters['seed']), 20)}" if parameters["seed"] else ""
    return (
        f"undersong audit {quoted}{input_options(parameters)}{reading_options(parameters)}{seed}{more} --judge {judge}"
    )


def map_words(fields: Mapping[str, str]) -> str:
    """Keys of an input, and what each is called in our JSON Lines, as ``--map`` takes them."""
    return ",".join(f"{ours}={theirs}" for theirs, ours in fields.items())


def input_options(parameters: Mapping[str, Any]) -> str:
    """The options that decide what is read, and how, with a space before each; "" where all is as usual.

    >>> input_options({"source_format": "jsonl", "fields": {"body": "text"}, "only": ["a*"]})
    " --from jsonl --map text=body --only 'a*'"
    """
    plain = [(option, parameters.get(name)) for option, name in
             (("--from", "source_format"), ("--dates", "dates"), ("--since", "since"))]  # fmt: skip
    fields = map_words(parameters.get("fields") or {})
    pairs = [plain[0], ("--map", fields), *(("--only", one) for one in parameters.get("only") or ()), *plain[1:]]
    pairs += [("--budget-share", parameters.get("budget_share")), ("--recall", parameters.get("recall"))]
    shown = "".join(f" {option} {shlex.quote(one_line(str(value), 3 * NAME))}" for option, value in pairs if value)
    flags = (("--no-thinking", parameters.get("thinking") is False), ("--add", parameters.get("add")))
    return shown + "".join(f" {option}" for option, is_set in flags if is_set)


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
