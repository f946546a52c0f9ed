"""The YAML loader: data files become typed values; unknown keys are refused with file, line and a suggestion."""

from __future__ import annotations

import copy
import difflib
import hashlib
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from undersong.datafiles.stored import PACKAGE, stored
from undersong.errors import RuleError

DATA = PACKAGE / "data"
RULES, PROMPTS, MODELS, CARDS = (DATA / name for name in ("rules", "prompts", "models", "cards"))
FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where PyYAML was built with it: ten times as fast
_MOST_FAULTS = 100  # of one file that are reported
_MOST_VALUES = 1_000_000  # of one file; a file of a megabyte has fewer, but aliases within aliases any number
T = TypeVar("T")
_PLAIN_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d*)?|[-+]?\.\d+|[-+]?(?:\d+\.\d*|\.\d+)[eE][-+]\d+")
_TAG = "tag:yaml.org,2002:"
_TEXT = _TAG + "str"
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_PATH = re.compile(r" - at (?:`|key in `)(?P<path>\$[^`]*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class DataFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the typed data files and of their sections: unknown keys are refused."""


class YamlDocument(msgspec.Struct, frozen=True):
    """A YAML document with the line of every node."""

    path: Path
    value: Any
    root: yaml.Node

    def line(self, path: str) -> int:
        """Line (from 1) of the node at a path such as ``$.define.PRAISE`` or ``$.cases[2]``; the nearest known one."""
        node = self.root
        for key, index in _STEP.findall(path):
            child = _child(node, key, index)
            if child is None:
                break
            node = child
        return int(node.start_mark.line) + 1

    def error(self, what: str, path: str = "$", remedy: str = "") -> RuleError:
        """A RuleError that names this file and the line of ``path``."""
        return RuleError(what, where=f"{self.path}:{self.line(path)}", remedy=remedy)


def load(path: Path) -> YamlDocument:
    """Parse one YAML file safely; raises RuleError with the line of a syntax error, a repeated key or an odd value."""
    try:
        text = path.read_text(encoding="utf-8")
        root, loader = _compose(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        remedy = "put a text that holds ': ', ' #' or a bracket in quotes, and close what is open"
        raise RuleError(f"not valid YAML: {error.problem}", where=f"{path}:{line}", remedy=remedy) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RuleError(f"not valid YAML: {error}", where=f"{path}:1", remedy="save it as UTF-8 text") from error
    except RecursionError as error:
        raise _bottomless(path) from error
    except OSError as error:
        raise RuleError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if root is None:
        raise RuleError("is empty", where=f"{path}:1", remedy="write at least one key")
    try:
        _refuse_odd_nodes(root, path)
        return YamlDocument(path, _construct(loader, root, path), root)
    except RecursionError as error:
        raise _bottomless(path) from error


def convert(document: YamlDocument, kind: type[T]) -> T:
    """The document as ``kind`` (msgspec types, unknown keys refused); raises RuleError with file and line."""
    try:
        return msgspec.convert(document.value, type=kind)
    except msgspec.ValidationError as error:
        raise _explain(document, str(error), kind) from error


def read(path: Path, kind: type[T]) -> T:
    """Load and convert one YAML file; what a file of this package says is stored, so that programs parse it once."""
    if not path.is_relative_to(PACKAGE) or not path.is_file():
        return convert(load(path), kind)
    name = path.relative_to(PACKAGE).as_posix().replace("/", "-")
    return stored(name, path.read_bytes(), kind, lambda: convert(load(path), kind))


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def did_you_mean(name: str, names: list[str]) -> str:
    """A remedy such as ``did you mean 'within'?``, or the known names."""
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(sorted(names))}"


def _bottomless(path: Path) -> RuleError:
    what = "is nested too deep, or an alias in it stands for what it is part of"
    return RuleError(what, where=f"{path}:1", remedy="write the keys of docs/rules.md without such nesting")


def _compose(text: str) -> tuple[yaml.Node | None, Any]:
    """The tree of nodes and the loader that made it; the words of a syntax error are those of the pure parser."""
    try:
        loader = FAST(text)
        return loader.get_single_node(), loader
    except yaml.YAMLError:
        loader = yaml.SafeLoader(text)
        return loader.get_single_node(), loader


def _construct(loader: Any, root: yaml.Node, path: Path) -> Any:
    try:
        return loader.construct_document(root)
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RuleError(f"not plain data: {error.problem}", where=f"{path}:{line}", remedy="remove the tag") from error


def _child(node: yaml.Node, key: str, index: str) -> yaml.Node | None:
    if index and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
        child: yaml.Node = node.value[int(index)]
        return child
    if key and isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _refuse_odd_nodes(root: yaml.Node, path: Path) -> None:
    """Refuses repeated keys, values that are not what they look like, and too many of them.

    Looks at each node once, however many aliases stand for it; raises RecursionError where one stands for itself. Of
    several faults the first in the file is raised, with the others.
    """
    sizes: dict[int, int] = {}  # of each node with all that its aliases stand for; 0 while it is looked at
    faults: list[RuleError] = []

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 0
            faults.extend(_faults(node, path) if len(faults) < _MOST_FAULTS else ())
            sizes[id(node)] = 1 + sum(size(part) for part in _parts(node))
            if sizes[id(node)] > _MOST_VALUES:
                what = f"stands for more than {_MOST_VALUES:,} values, by aliases within aliases"
                raise RuleError(what, where=f"{path}:{node.start_mark.line + 1}", remedy="write out what is meant")
        if not sizes[id(node)]:
            raise RecursionError
        return sizes[id(node)]

    size(root)
    if faults:
        faults.sort(key=lambda fault: int(fault.where.rpartition(":")[2]))
        faults[0].also = tuple(faults[1:])
        raise faults[0]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _faults(node: yaml.Node, path: Path) -> Iterator[RuleError]:
    """What is wrong with a scalar, or with the keys of a mapping."""
    if isinstance(node, yaml.ScalarNode):
        yield from _disguise(node, path)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for name, _ in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield from _disguise(name, path)
            if str(name.value) in seen:
                where = f"{path}:{name.start_mark.line + 1}"
                yield RuleError(f"key '{name.value}' stands twice", where=where, remedy="keep one of them")
            seen.add(str(name.value))


def _disguise(node: yaml.ScalarNode, path: Path) -> Iterator[RuleError]:
    """YAML 1.1 reads ``010`` as 8, ``1:30`` as 90, ``on`` as true: none is meant."""
    if node.tag == _TEXT:
        return
    kind, text = node.tag.removeprefix(_TAG), str(node.value)
    if kind == "bool" and text.lower() not in ("true", "false"):
        meant = "true" if text.lower() in ("on", "yes", "y") else "false"
        what, remedy = f"is read as {meant}", f"write {meant}, or put a text in quotes"
    elif kind in ("int", "float") and not _PLAIN_NUMBER.fullmatch(text):
        what = "is another number than it looks like"
        remedy = "write it with decimal digits alone, or put a text in quotes"
    elif kind == "timestamp" and not _is_moment(text):
        what, remedy = "looks like a date and is none", "correct it, or put a text in quotes"
    else:
        return
    yield RuleError(f"'{text[:40]}' {what}", where=f"{path}:{node.start_mark.line + 1}", remedy=remedy)


def _is_moment(text: str) -> bool:
    try:
        return isinstance(yaml.safe_load(text), date)
    except (ValueError, yaml.YAMLError):
        return False


def _culprit(document: YamlDocument, path: str, message: str, kind: Any) -> str:
    """The path of the first key whose value alone gives the same message; the mapping's own path if none does."""
    for key in _at(document.value, path):
        variant = copy.deepcopy(document.value)
        mapping = _at(variant, path)
        for other in [each for each in mapping if each != key]:
            del mapping[other]
        try:
            msgspec.convert(variant, type=kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return f"{path}.{key}"
    return path


def _at(value: Any, path: str) -> Any:
    for key, index in _STEP.findall(path):
        value = value[int(index)] if index else value[key]
    return value


def _explain(document: YamlDocument, message: str, kind: Any) -> RuleError:
    where = _PATH.search(message)
    path = where["path"] if where else "$"
    if path.endswith("[...]"):  # the value of some key of a mapping; msgspec does not say which
        path = _culprit(document, path.removesuffix("[...]"), message, kind)
    unknown = _UNKNOWN.search(message)
    if not unknown:
        return document.error(message.split(" - at ")[0], path)
    name = unknown["name"]
    line_path = f"{path}.{name}"
    return document.error(f"unknown key '{name}'", line_path, "see the keys of this kind of file in docs/rules.md")
