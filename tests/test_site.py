"""The documentation site is built without a warning, and holds every page, command, rule and public name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sphinx

import undersong
from undersong.cli import VERBS
from undersong.cli.schemas import output_schemas
from undersong.patterns.catalog import all_rules
from undersong.report.schemas import json_schema

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert sphinx.version_info >= (8,)
    built = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(built))
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return built


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").is_file(), page.name


def test_the_reference_is_made_of_commands_rules_and_docstrings(site: Path) -> None:
    commands = (site / "command-line.html").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f'id="undersong-{verb}"' not in commands] == []
    assert "--fail-on-unassessed" in commands
    rules = (site / "_generated" / "rule-catalog.html").read_text(encoding="utf-8")
    assert [rule.id for rule in all_rules() if rule.id not in rules] == []
    names = (site / "python.html").read_text(encoding="utf-8")
    public = set(undersong.__all__) - {"__version__", "UndersongError"}
    assert [name for name in public if f'id="undersong.{name}"' not in names] == []
    assert "undersong audit --help" in commands


def test_the_schemas_of_all_that_is_written_are_published(site: Path) -> None:
    for output in output_schemas():
        assert json.loads((site / "schemas" / output.file).read_text(encoding="utf-8")) == json_schema(output)
