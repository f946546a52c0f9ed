"""Data files: unknown keys, wrong values and broken YAML are refused with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from undersong.datafiles import yaml_loader
from undersong.errors import RuleError


class Colours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    shades: dict[str, float] = {}
    order: list[int] = []


GOOD = "name: green\nshades:\n  light: .2\n  dark: .8\norder: [1, 2]\n"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "colours.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_good_file_becomes_a_typed_value(tmp_path: Path) -> None:
    assert yaml_loader.read(written(tmp_path, GOOD), Colours) == Colours("green", {"light": 0.2, "dark": 0.8}, [1, 2])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (GOOD + "ordre: [1]\n", 6, "unknown key 'ordre'"),
        (GOOD.replace(".8", "deep"), 4, "float"),
        (GOOD.replace("[1, 2]", "[1, two]"), 5, "int"),
        (GOOD + "name: red\n", 6, "key 'name' stands twice"),
        ("name: [green\n", 2, "not valid YAML"),
        ("shades: {}\n", 1, "missing required field `name`"),
        ("", 1, "is empty"),
        (b"name: gr\xfcn\n", 1, "not valid YAML"),
        ("name: !!python/object/apply:os.system [true]\n", 1, "not plain data"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str | bytes, line: int, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RuleError) as error:
        yaml_loader.read(path, Colours)
    assert error.value.where == f"{path}:{line}"
    assert message in str(error.value)


@pytest.mark.parametrize("merged", [False, True])
def test_aliases_within_aliases_that_stand_for_too_much_are_refused(tmp_path: Path, merged: bool) -> None:
    before, after = ("{<<: [", "]}") if merged else ("[", "]")
    lines = [
        "a0: &a0 {light: .2}",
        *(f"a{n}: &a{n} {before}{', '.join([f'*a{n - 1}'] * 9)}{after}" for n in range(1, 40)),
    ]
    with pytest.raises(RuleError, match=r"yaml:7: stands for more than 1,000,000 values"):
        yaml_loader.load(written(tmp_path, "\n".join(lines)))
    few = yaml_loader.load(written(tmp_path, "\n".join(lines[:4])))
    assert few.value["a1"] == ({"light": 0.2} if merged else [{"light": 0.2}] * 9)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="nowhere"):
        yaml_loader.read(tmp_path / "nowhere.yaml", Colours)


@pytest.mark.parametrize(
    ("name", "remedy"), [("whithin", "did you mean 'within'?"), ("xyz", "known are until, within")]
)
def test_a_remedy_names_what_is_near_else_what_is_known(name: str, remedy: str) -> None:
    assert yaml_loader.did_you_mean(name, ["within", "until"]) == remedy
