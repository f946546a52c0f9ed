"""The YAML reader: the fast parser gives what the pure one gives, values, lines and words of errors."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from undersong.datafiles import yaml_loader
from undersong.errors import RuleError

SHIPPED = sorted(yaml_loader.RULES.rglob("*.yaml"))


def lines(node: yaml.Node | None) -> list[tuple[str, int]]:
    """Every scalar with its line, in order."""
    if isinstance(node, yaml.ScalarNode):
        return [(node.value, node.start_mark.line)]
    children = node.value if node is not None else []
    return [
        each
        for child in children
        for part in (child if isinstance(child, tuple) else (child,))
        for each in [(part.tag, part.start_mark.line), *lines(part)]
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_both_parsers_read_a_shipped_file_alike(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    document = yaml_loader.load(path)
    assert document.value == yaml.safe_load(text)
    assert lines(document.root) == lines(yaml.compose(text, Loader=yaml.SafeLoader))


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: [2,\nc: 3\n", 4, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("a: 1\nb: !!python/name:os.system\n", 2, "not plain data"),
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' stands twice"),
        ("# nothing\n", 1, "is empty"),
        ("a: " + "[" * 3000 + "\n", 1, "nested too deep"),
        ("a: &a [*a]\n", 1, "an alias in it stands for what it is part of"),
        ("a: 1\nb: 010\n", 2, "'010' is another number than it looks like"),
        ("a: [1, 1_000]\n", 1, "'1_000' is another number"),
        ("a: 1:30\n", 1, "'1:30' is another number"),
        ("a: -1:30.5\n", 1, "'-1:30.5' is another number"),
        ("a: 0x1F\n", 1, "'0x1F' is another number"),
        ("a: .inf\n", 1, "'.inf' is another number"),
        ("a: 1\nb: on\n", 2, "'on' is read as true"),
        ("a: {b: [x, No]}\n", 1, "'No' is read as false"),
        ("on: 1\n", 1, "'on' is read as true"),
        ("a: 2026-99-99\n", 1, "'2026-99-99' looks like a date and is none"),
        ("1:30: x\n", 1, "'1:30' is another number"),
        ('a: !!timestamp "x"\n', 1, "'x' looks like a date and is none"),
        ('a: !!timestamp "["\n', 1, "looks like a date and is none"),
        ('a: !!int "x"\n', 1, "'x' is another number"),
        ("a: !!timestamp [x]\n", 1, "not plain data"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RuleError, match=what) as raised:
        yaml_loader.load(path)
    assert raised.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "+2",
        "10",
        "0.5",
        ".5",
        "5.",
        "-0.25",
        "1.5e-3",
        "true",
        "False",
        "null",
        "~",
        "1e-3",
        "08",
        "y",
        "2026-11-21",
    ],
)
def test_what_is_as_it_looks_is_read(tmp_path: Path, value: str) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(f"a: {value}\nb: ['on', \"010\", '2026-01-01', '1:30']\n", encoding="utf-8")
    read = yaml_loader.load(path).value
    assert read == {"a": yaml.safe_load(value), "b": ["on", "010", "2026-01-01", "1:30"]}


def test_the_words_of_a_syntax_error_are_those_of_the_pure_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("a:\n  - b\n c: d\n", encoding="utf-8")
    with pytest.raises(RuleError) as fast:
        yaml_loader.load(path)
    monkeypatch.setattr(yaml_loader, "FAST", yaml.SafeLoader)
    with pytest.raises(RuleError) as pure:
        yaml_loader.load(path)
    assert str(fast.value) == str(pure.value)


def test_a_merged_key_may_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n", encoding="utf-8")
    assert yaml_loader.load(path).value["more"] == {"a": 1, "b": 3}
