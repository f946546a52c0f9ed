"""Code in messages: where it is, its hash, and whether it changed."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scan.dialogue import change, scan, scans, talk
from undersong.models import CodeBlock, ToolCall
from undersong.scan.code import fences

LOOP = "for x in rows:\n    print(x)"


def blocks(text: str) -> list[tuple[str | None, str]]:
    """Language and verbatim code of each block."""
    code_blocks = scans(f"assistant: {text}")[0].code_blocks
    return [(block.lang, text[block.start : block.end]) for block in code_blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nx = 1\n```", [("python", "x = 1\n")]),
        ("~~~\nx = 1\n~~~ \nend", [(None, "x = 1\n")]),
        ("````md\n```\ninner\n```\n````", [("md", "```\ninner\n```\n")]),
        ("```py\nx = 1", [("py", "x = 1")]),
        ("  ```js\n  y()\n  ```\nthen\n```\nz\n```", [("js", "  y()\n"), (None, "z\n")]),
        ("```python app.py\nx\n```", [("python", "x\n")]),
        ("a ```inline``` b", []),
        ("``\nx = 1\n``", []),
        ("```\n```", []),
        ("```\n~~~\n```", [(None, "~~~\n")]),
    ],
)
def test_fenced_blocks_are_found(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert blocks(text) == expected


def test_a_fence_may_name_its_file() -> None:
    texts = ["```python app.py\nx\n```", '```ts title="src/a.ts"\nx\n```', "```go:cmd/main.go\nx\n```", "```go\nx\n```"]
    assert [one.code_blocks[0].path for one in scans(*(f"assistant: {text}" for text in texts))] == [
        "app.py",
        "src/a.ts",
        "cmd/main.go",
        None,
    ]


def test_the_hash_is_over_the_code_without_trailing_space_and_blank_ends() -> None:
    same = [f"```\n{LOOP}\n```", f"```\n\n{LOOP}   \n\n```", f"~~~py\n{LOOP}\n".replace("\n", "\r\n") + "~~~"]
    other = f"```\n{LOOP.replace('    ', '  ')}\n```"
    hashes = [one.code_blocks[0].sha256 for one in scans(*(f"assistant: {text}" for text in [*same, other]))]
    assert hashes[:3] == [hashlib.sha256(LOOP.encode()).hexdigest()] * 3
    assert hashes[3] != hashes[0]


def calls(*tool_calls: ToolCall) -> list[CodeBlock]:
    conversation = change(talk("assistant: done"), 0, tool_calls=tool_calls)
    return list(scan(conversation)[0][0].code_blocks)


def test_edits_writes_and_patches_are_code() -> None:
    patch = "*** Begin Patch\n*** Update File: src/b.py\n-x\n+y\n*** End Patch"
    code_blocks = calls(
        ToolCall(name="Edit", input={"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ToolCall(name="Write", input={"file_path": "c.py", "content": "y = 1\nz = 2"}),
        ToolCall(name="MultiEdit", input={"file_path": "d.py", "edits": [{"old_string": "a", "new_string": "b"}] * 2}),
        ToolCall(name="apply_patch", input=patch),
        ToolCall(name="Write", input='{"file_path": "e.py", "content": "w"}'),
        ToolCall(name="Bash", input={"command": "ls"}),
        ToolCall(name="Edit", input=None),
        ToolCall(name="Edit", input={"file_path": 3, "new_string": ["no text"]}),
    )
    assert [(block.kind, block.path, block.lines) for block in code_blocks] == [
        ("edit", "a.py", 1),
        ("write", "c.py", 2),
        ("edit", "d.py", 1),
        ("edit", "d.py", 1),
        ("patch", "src/b.py", 5),
        ("write", "e.py", 1),
    ]
    assert all(block.start is None for block in code_blocks)


def deltas(*codes: str) -> list[float | None]:
    return [one.code_change_delta for one in scans(*(f"assistant: {code}" for code in codes))]


def test_code_that_is_what_it_was_has_changed_by_nothing() -> None:
    assert deltas(f"```\n{LOOP}\n```", "Fixed it!", f"Here:\n```\n{LOOP}  \n```") == [None, None, 0.0]


def test_a_small_change_is_small_and_new_code_is_new() -> None:
    long = "\n".join(f"value_{n} = compute({n})" for n in range(30))
    first, small, new = deltas(
        f"```\n{long}\n```", f"```\n{long.replace('compute(7)', 'compute(8)')}\n```", "```\nSELECT name FROM birds\n```"
    )
    assert first is None
    assert small == pytest.approx(0.03, abs=0.03)
    assert new == pytest.approx(1.0, abs=0.1)


def test_only_white_space_changed_is_not_nothing() -> None:
    assert deltas("```\nif a:\n  b\n```", "```\nif a:\n    b\n```")[1] == pytest.approx(0.001)


def test_each_agent_and_each_path_has_its_own_past() -> None:
    one, other = "```py a.py\nx = 1\n```", "```py b.py\nx = 1\n```"
    results = scans(f"ann: {one}", f"bo: {one}", f"ann: {other}", f"ann: {one}")
    assert [each.code_change_delta for each in results] == [None, None, None, 0.0]


def test_an_edit_is_compared_with_what_it_replaces() -> None:
    def edit(old: str, new: str) -> float | None:
        call = ToolCall(name="Edit", input={"file_path": "a.py", "old_string": old, "new_string": new})
        return scan(change(talk("assistant: done"), 0, tool_calls=(call,)))[0][0].code_change_delta

    assert edit("x = 1", "x = 1  ") == 0.0
    assert edit("x = 1", "y(2)") == pytest.approx(1.0, abs=0.4)


PIECES = st.sampled_from(["```", "~~~", "````", "`", "~", "\n", " ", "\t", "python", "x", "\r\n", "> "])


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=500, deadline=None)
def test_fences_are_those_that_a_look_at_every_line_finds(text: str) -> None:
    assert [(fence.start, fence.end, fence.code_start, fence.code_end) for fence in fences(text)] == slow_fences(text)


def slow_fences(text: str) -> list[tuple[int, int, int, int]]:
    """The same line by line."""
    closed, opened, at = [], None, 0
    for line in text.split("\n"):
        bare, after = line.lstrip(" \t"), min(at + len(line) + 1, len(text))
        kind = bare[:1]
        run = len(bare) - len(bare.lstrip(kind)) if kind in ("`", "~") else 0
        if run >= 3:
            info = bare[run:].strip()
            if opened is None:
                if kind == "~" or "`" not in info:
                    opened = at, after, kind, run
            elif kind == opened[2] and run >= opened[3] and not info:
                closed.append((opened[0], after, opened[1], at))
                opened = None
        at += len(line) + 1
    return closed if opened is None else [*closed, (opened[0], len(text), opened[1], len(text))]
