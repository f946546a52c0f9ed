"""Substance: what comments and idle white space hide, and what they do not."""

from __future__ import annotations

import pytest

from tests.scan.dialogue import change, scan, scans, talk
from undersong.models import CodeBlock, ToolCall

SAME = {
    "a comment line": ("py", "x = 1", "# now right\nx = 1"),
    "a comment at the end": ("py", "x = 1", "x = 1  # now right"),
    "blank lines": ("py", "x = 1\ny = 2", "x = 1\n\n\ny = 2"),
    "spaces inside": ("py", "x=1 ;y  = 2", "x=1 ;y = 2"),
    "indentation where braces rule": ("js", "if (a) {\nb()\n}", "if (a) {\n    b()\n}"),
    "a block comment": ("go", "f()", "/* fixed\n   at last */\nf()"),
    "a dash comment": ("sql", "SELECT 1", "-- one\nSELECT 1"),
}
OTHER = {
    "a number": ("py", "x = 1", "x = 2"),
    "indentation that means something": ("py", "if a:\n    b()\nc()", "if a:\n    b()\n    c()"),
    "a mark inside a string": ("py", 'colour = "#fff"', 'colour = "#000"'),
    "a string with a space": ("py", "s = 'a  b'", "s = 'a b'"),
    "a preprocessor line": ("c", "#define N 1", "#define N 2"),
    "a hash in a language without hashes": ("js", "#a\nx", "#b\nx"),
    "an unknown language": ("zzz", "x", "# y\nx"),
    "a shebang": ("sh", "#!/bin/sh\nls", "#!/bin/bash\nls"),
}


def substances(lang: str, *codes: str) -> list[str | None]:
    return [one.code_blocks[0].substance for one in scans(*(f"assistant: ```{lang}\n{code}\n```" for code in codes))]


@pytest.mark.parametrize(("lang", "one", "other"), SAME.values(), ids=SAME)
def test_comments_and_idle_white_space_are_no_substance(lang: str, one: str, other: str) -> None:
    first, second = substances(lang, one, other)
    assert first == second


@pytest.mark.parametrize(("lang", "one", "other"), OTHER.values(), ids=OTHER)
def test_what_runs_differently_differs(lang: str, one: str, other: str) -> None:
    first, second = substances(lang, one, other)
    assert first != second


def blocks(name: str, tool_input: object) -> list[CodeBlock]:
    conversation = change(talk("assistant: done"), 0, tool_calls=(ToolCall(name=name, id="c", input=tool_input),))
    return list(scan(conversation)[0][0].code_blocks)


def test_a_change_of_comments_alone_is_the_least_change() -> None:
    results = scans("assistant: ```py\nx = 1\n```", "assistant: ```py\n# better\nx = 1\n```")
    assert results[1].code_change_delta == pytest.approx(0.001)


def test_files_and_patches_in_a_command_are_code() -> None:
    command = (
        "mkdir -p src && cat > src/a.py <<'EOF'\nx = 1\nEOF\ntee b.cfg <<END >/dev/null\n[a]\nEND\necho y >> c.txt"
    )
    (first, second) = blocks("Bash", {"command": command})
    assert (first.kind, first.path, first.lines, first.call) == ("write", "src/a.py", 1, "c")
    assert (second.path, second.lines) == ("b.cfg", 1)
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: d.py\n@@\n-x\n+y\n*** End Patch\nEOF"
    assert [(each.kind, each.path) for each in blocks("shell", {"command": ["bash", "-lc", patch]})] == [
        ("patch", "d.py")
    ]
    assert blocks("Bash", {"command": "cat >> log.txt <<EOF\nmore\nEOF"}) == []
    assert blocks("Bash", {"command": "cat notes.txt"}) == []


def test_an_edit_knows_what_it_replaces() -> None:
    (idle,) = blocks("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 1  # ok"})
    (real,) = blocks("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"})
    assert idle.replaces == idle.substance
    assert real.replaces != real.substance
    (idle_patch,) = blocks("apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 1\n*** End Patch")
    assert idle_patch.replaces == idle_patch.substance


def test_an_endless_command_is_read_in_bounded_time() -> None:
    assert len(blocks("Bash", {"command": "cat <<E\n" * 20_000})) <= 1
