"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import Undersong

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
DIGEST = re.compile(r"digest [0-9a-f]{16}…")


def test_the_run_that_the_readme_shows_prints_exactly_that(undersong: Undersong) -> None:
    shown = re.search(r"```\n\$ undersong audit samples\n(.*?)```", README, re.DOTALL)
    assert shown
    printed = undersong("audit", "samples").out
    assert DIGEST.sub("digest …", printed) == DIGEST.sub("digest …", shown[1])


def test_the_library_example_of_the_readme_runs(undersong: Undersong, tmp_path: Path) -> None:
    assert undersong("formats").code == 0
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example
    names: dict[str, object] = {}
    exec(compile(example[1].replace("conversations.zip", str(tmp_path / "samples")), "README.md", "exec"), names)
    assert names["case"]


def test_every_format_is_named_in_the_readme() -> None:
    from undersong.formats import FORMATS

    for form in FORMATS:
        assert f"`{form.name}`" in README, form.name
