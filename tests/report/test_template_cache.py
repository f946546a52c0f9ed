"""Compiled templates are stored and used again, unless what they were made from has changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import jinja2
import pytest

from undersong.report.render.template_cache import TemplateCache

SOURCE = "{{ 'a'|loud }} {{ name|loud }}"


class Counting(jinja2.Environment):
    """An environment that counts what it compiles."""

    compiled = 0

    def _generate(self, *arguments: object, **more: object) -> str:
        self.compiled += 1
        return super()._generate(*arguments, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "bytecode"


def environment(source: str = SOURCE, loud: Callable[[str], str] = str.upper, name: str = "html") -> Counting:
    made = Counting(loader=jinja2.DictLoader({"page": source}))
    made.filters["loud"] = loud
    made.bytecode_cache = TemplateCache(name, made.filters.values())
    return made


def rendered(made: Counting) -> tuple[str, int]:
    return made.get_template("page").render(name="b"), made.compiled


def test_a_template_is_compiled_once_for_all_programs() -> None:
    assert [rendered(environment()) for _ in range(3)] == [("A B", 1), ("A B", 0), ("A B", 0)]


def test_a_changed_template_is_compiled_again_in_the_same_file(folder: Path) -> None:
    assert rendered(environment()) == ("A B", 1)
    assert rendered(environment(f"{SOURCE}!")) == ("A B!", 1)
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


def test_another_environment_has_its_own_file() -> None:
    assert rendered(environment()) == ("A B", 1)
    assert rendered(environment(loud=str.title, name="markdown")) == ("A B", 1)
    assert rendered(environment()) == ("A B", 0)


def test_a_filter_in_a_module_that_was_edited_makes_it_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from undersong.report import escape

    module = tmp_path / "escape.py"
    module.write_text("")
    monkeypatch.setattr(escape, "__file__", str(module))
    assert [rendered(environment(loud=escape.plain))[1] for _ in range(2)] == [1, 0]
    os.utime(module, (1, 1))
    assert rendered(environment(loud=escape.plain))[1] == 1


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_file_is_replaced(folder: Path, damage: bytes | None) -> None:
    assert rendered(environment()) == ("A B", 1)
    (file,) = [path for path in folder.rglob("*") if path.is_file()]
    file.write_bytes(file.read_bytes()[:40] if damage is None else damage)
    assert [rendered(environment()) for _ in range(2)] == [("A B", 1), ("A B", 0)]


def test_nothing_is_written_where_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [rendered(environment()) for _ in range(2)] == [("A B", 1)] * 2
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_costs_time_alone(folder: Path) -> None:
    folder.write_text("a file")
    assert [rendered(environment()) for _ in range(2)] == [("A B", 1)] * 2
