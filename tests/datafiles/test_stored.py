"""What is made of the package's own files is made once, and again when anything that it depends on has changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import pytest

import undersong
from undersong.datafiles import stored as module
from undersong.datafiles import verdict_config, yaml_loader
from undersong.datafiles.stored import stored, write_whole
from undersong.patterns import catalog
from undersong.patterns.language.compile import CheckedRule, check_rule
from undersong.scan.phrases import PhraseFile, signal_files

KIND = dict[str, int]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "bytecode"


class Maker:
    """Makes a value, and counts how often."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> dict[str, int]:
        self.made += 1
        return {"a": 1}

    def get(self, name: str = "one", source: bytes = b"a: 1", kind: object = KIND) -> int:
        assert stored(name, source, kind, self) == {"a": 1}
        return self.made


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_value_is_made_once_for_all_programs():
    maker = Maker()
    assert [maker.get() for _ in range(3)] == [1, 1, 1]
    assert maker.get("two") == 2, "another name is another value"


@pytest.mark.parametrize("changed", [{"source": b"a: 2"}, {"kind": dict[str, float]}])
def test_another_source_and_another_kind_make_it_again_in_the_same_file(folder: Path, changed: dict[str, object]):
    maker = Maker()
    assert [maker.get(), maker.get(**changed), maker.get(**changed), maker.get()] == [1, 2, 2, 3]  # type: ignore[arg-type]
    assert len(files(folder)) == 1


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two files of code in place of this one."""
    own = tmp_path / "package"
    (own / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/code.py", "inner/grammar.lark"):
        (own / name).write_text("version = 1")
    monkeypatch.setattr(module, "PACKAGE", own)
    module._code.cache_clear()
    yield own
    module._code.cache_clear()


@pytest.mark.parametrize("name", ["__init__.py", "inner/code.py", "inner/grammar.lark"])
def test_edited_code_makes_it_again(package: Path, name: str):
    maker = Maker()
    assert maker.get() == 1
    os.utime(package / name, (1, 1))
    module._code.cache_clear()
    assert [maker.get() for _ in range(2)] == [2, 2]


def test_another_version_makes_it_again_though_no_time_or_size_tells_it(monkeypatch: pytest.MonkeyPatch):
    maker = Maker()
    for version, made in (("1", 1), ("2", 2), ("2", 2)):
        monkeypatch.setattr(undersong, "__version__", version)
        module._code.cache_clear()
        assert maker.get() == made
    module._code.cache_clear()


def test_without_files_of_code_the_version_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "archive.zip" / "undersong")
    module._code.cache_clear()
    maker = Maker()
    assert [maker.get() for _ in range(2)] == [1, 1]
    module._code.cache_clear()


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_file_is_replaced(folder: Path, damage: bytes | None):
    maker = Maker()
    maker.get()
    (file,) = files(folder)
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 2]) if damage is None else damage)
    assert [maker.get() for _ in range(2)] == [2, 2]


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    maker = Maker()
    assert [maker.get() for _ in range(2)] == [1, 2]
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_costs_time_alone(folder: Path):
    folder.write_text("a file")
    maker = Maker()
    assert [maker.get() for _ in range(2)] == [1, 2]


def test_the_shipped_rules_come_back_as_they_were_checked(folder: Path):
    paths = catalog.rule_files()
    fresh = tuple(check_rule(yaml_loader.load(path)) for path in paths)
    stored("patterns", b"", tuple[CheckedRule, ...], lambda: fresh)
    again = stored("patterns", b"", tuple[CheckedRule, ...], lambda: ())
    assert again == fresh
    assert files(folder)


def test_data_files_come_back_as_they_were_parsed(monkeypatch: pytest.MonkeyPatch):
    compared = []

    def compare(name: str, source: bytes, kind: Any, make: Callable[[], Any]) -> Any:  # noqa: ARG001
        value = make()
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)
        assert plain(again) == plain(value)
        compared.append(name)
        return value

    monkeypatch.setattr(yaml_loader, "stored", compare)
    for read in vars(verdict_config).values():
        if hasattr(read, "cache_clear") and not signature(read).parameters:
            read.__wrapped__()
    for path in signal_files():
        yaml_loader.read(path, PhraseFile)
    assert len(compared) > 25


def plain(value: Any) -> Any:
    """A value with its types and the order of its keys, to be compared."""
    if isinstance(value, msgspec.Struct):
        return type(value), [plain(getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [(plain(key), plain(one)) for key, one in value.items()]
    return [plain(one) for one in value] if isinstance(value, list | tuple) else (type(value), value)


def test_files_of_the_package_are_parsed_once_and_any_other_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = tmp_path / "own.yaml"
    own.write_text("a: 1")
    shipped = yaml_loader.RULES / "refusals.yaml"
    first = [yaml_loader.read(shipped, dict), yaml_loader.read(own, dict)]  # type: ignore[type-arg]
    parsed = []
    monkeypatch.setattr(yaml_loader, "_compose", lambda text: parsed.append(text) or (None, None))  # type: ignore[func-returns-value]
    assert yaml_loader.read(shipped, dict) == first[0]  # type: ignore[type-arg]
    assert not parsed
    with pytest.raises(yaml_loader.RuleError, match="is empty"):
        yaml_loader.read(own, dict)  # type: ignore[type-arg]
    assert parsed == ["a: 1"]


def test_what_cannot_be_put_in_its_place_leaves_no_draft(tmp_path: Path) -> None:
    taken = tmp_path / "rules"
    (taken / "inside").mkdir(parents=True)  # a folder that is not empty cannot be replaced by a file
    write_whole(taken, b"content")
    assert list(tmp_path.iterdir()) == [taken]
