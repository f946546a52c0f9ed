"""Signatures that others call, before and after edits: which are gone, and which ask for something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from undersong.verdict.edits import FileEdit

_PARAMETERS = r"\((?P<params>[^()]*(?:\([^()]*\)[^()]*)*)\)"
_PYTHON = r"^[ \t]{0,4}(?:async[ ]+)?def[ ]+(?P<name>[A-Za-z]\w*)" + _PARAMETERS
_SCRIPT = (
    r"^[ \t]*export[ ]+(?:default[ ]+)?(?:(?:async[ ]+)?function\*?[ ]+|const[ ]+)(?P<name>\w+)(?:<[^>\n]*>)?"
    r"(?:[ ]*=[ ]*(?:async[ ]*)?)?[ ]*" + _PARAMETERS
)
_GO = r"^func[ ]+(?:\([^)\n]*\)[ ]*)?(?P<name>[A-Z]\w*)" + _PARAMETERS
_RUST = r"^[ \t]*pub[ ]+(?:(?:async|const|unsafe)[ ]+)*fn[ ]+(?P<name>\w+)(?:<[^>\n]*>)?" + _PARAMETERS
_PUBLIC = r"^[ \t]*public[ ][\w<>\[\], ?]*?\b(?P<name>\w+)[ ]*" + _PARAMETERS
_SHAPES = {
    "py": _PYTHON, "pyi": _PYTHON, "ts": _SCRIPT, "tsx": _SCRIPT, "js": _SCRIPT, "jsx": _SCRIPT, "mjs": _SCRIPT,
    "go": _GO, "rs": _RUST, "java": _PUBLIC, "cs": _PUBLIC, "kt": _PUBLIC,
}  # fmt: skip
_LOOSE = ("py", "pyi", "ts", "tsx", "js", "jsx", "mjs")  # a caller need not pass what has a default
_INTERNAL = re.compile(r"(?:^|/)(?:internal|_\w+)(?:/|\.\w+$)|(?:^|/)_(?!_init__)\w+\.py$")
_OPTIONAL = re.compile(r"[=?*]|^(?:\.\.\.|/)")


def changed_signature(edit: FileEdit, others: Iterable[FileEdit]) -> str:
    """The signature that callers can no longer call after an edit, "" where there is none.

    What stands in another edit's new text was moved there.
    """
    ending = edit.path.rsplit(".", 1)[-1].lower()
    if edit.old is None or ending not in _SHAPES or _INTERNAL.search(edit.path):
        return ""
    before, after = _signatures(ending, edit.old), _signatures(ending, edit.new)
    elsewhere = "\n".join(other.new for other in others if other is not edit)
    for name, (line, parameters) in before.items():
        if name not in after:
            if edit.deleted or not re.search(rf"\b{re.escape(name)}\b", f"{edit.new}\n{elsewhere}"):
                return line
        elif not _serves(ending, parameters, after[name][1]):
            return line
    return ""


def _signatures(ending: str, text: str) -> dict[str, tuple[str, list[str]]]:
    """Name → its line and its parameters."""
    return {
        match["name"]: (" ".join(match[0].split()), _split(match["params"]))
        for match in re.finditer(_SHAPES[ending], text, re.MULTILINE)
        if not match["name"].startswith("_")
    }


def _serves(ending: str, before: list[str], after: list[str]) -> bool:
    """Whether whoever called with the parameters of before can call with those of after."""
    if ending not in _LOOSE:
        return before == after
    names = [[_bare(parameter) for parameter in side] for side in (before, after)]
    return names[1][: len(names[0])] == names[0] and all(map(_OPTIONAL.search, after[len(before) :]))


def _bare(parameter: str) -> str:
    """The name of a parameter without its type and its default."""
    return re.split(r"[:=?]", parameter, maxsplit=1)[0].strip()


def _split(parameters: str) -> list[str]:
    parts, depth = [""], 0
    for sign in " ".join(parameters.split()):
        depth += (sign in "([{<") - (sign in ")]}>")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]
