"""Files in, settled conversations out: folders, hostile files, many files at once, in bounded memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.formats.conftest import outcome
from undersong.errors import UsageError
from undersong.formats.ingest import MOST_REPORTED, read
from undersong.formats.spool import BUFFER
from undersong.models import Conversation, InputFile, Problem

SAMPLES = Path(__file__).parents[1] / "samples"
GOOD = '{"id": "%s", "conversation": "%s", "author": "kira", "role": "agent", "text": "hello"}\n'
MEASURE = """
import pathlib, resource, sys
from undersong.formats.ingest import read
from undersong.models import Conversation, Problem
messages, told = 0, []
for item in read([sys.argv[1]]):
    if isinstance(item, Conversation): messages += len(item.messages)
    elif isinstance(item, Problem): told.append(item.kind + ": " + item.what)
status = pathlib.Path("/proc/self/status")  # ru_maxrss of a child starts at the peak of its parent on Linux
if status.exists():
    kib = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
print(messages, kib >> 10, *told[:3], sep="|")
"""


def measured(path: Path) -> tuple[int, int, list[str]]:
    """Messages, peak memory in MiB and the first problems of reading a file in a process of its own."""
    ran = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    messages, memory, *problems = ran.stdout.strip().split("|")
    return int(messages), int(memory), problems


def test_all_samples_are_read_from_one_folder_in_one_go() -> None:
    result = outcome(SAMPLES)
    assert len(result.conversations) == len({conversation.id for conversation in result.conversations}) > 10
    assert result.problem_texts("file") == result.problem_texts("record") == []
    assert sum(each.messages for each in result.files) == sum(len(each.messages) for each in result.conversations)


def test_the_same_input_gives_the_same_output() -> None:
    assert list(read([SAMPLES])) == list(read([SAMPLES]))


def test_every_file_stands_with_its_hash_size_and_counts() -> None:
    path = SAMPLES / "jsonl" / "harbour.jsonl"
    (file,) = outcome(path).files
    assert (file.name, file.size) == (path.name, path.stat().st_size)
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (file.source_format, file.conversations, file.messages, file.skipped) == ("jsonl", 2, 6, 0)


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD % ("1", "c"))
    (tmp_path / "empty.json").write_text("\n")
    (tmp_path / "wide.json").write_bytes(b"\x7fELF" + b"\0" * 100)
    (tmp_path / "unknown.json").write_text('{"weather": "fine"}')
    names = ["missing.json", "empty.json", "wide.json", "unknown.json", "good.jsonl"]
    result = outcome(*(tmp_path / name for name in names))
    assert [(Path(problem.where).name, problem.kind) for problem in result.problems] == [
        (name, "file") for name in names[:4]
    ]
    assert all(problem.remedy for problem in result.problems)
    assert result.only.id == "c"


def test_a_folder_of_mixed_files_reads_what_is_known_and_says_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.jsonl").write_text(GOOD % ("1", "b"))
    (tmp_path / "a.txt").write_text("User: hi\nAssistant: hello\n")
    (tmp_path / "README.md").write_text("# About\n\nThese are chats.\n")
    (tmp_path / "user.json").write_text('{"id": "u"}')
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress((GOOD % ("2", "c")).encode()))
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04")
    result = outcome(tmp_path)
    assert [conversation.id for conversation in result.conversations] == ["a", "c", "b"]
    kinds = {Path(problem.where).name: problem.kind for problem in result.problems}
    assert kinds == {"README.md": "note", "user.json": "note", "broken.zip": "file", tmp_path.name: "note"}


@pytest.mark.parametrize("content", [{}, {"a.json": "{}"}, {"a.png": "x"}])
def test_a_folder_that_gives_nothing_is_a_failure(tmp_path: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    assert len(outcome(tmp_path).problem_texts("file")) == 1


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD % ("1", "c"))
    assert len(outcome(path, tmp_path, str(path)).files) == 1


def test_conversations_without_ids_are_named_after_their_file_and_never_merged(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.txt").write_text(f"User: {folder}\nAssistant: hello\n")
    assert [conversation.id for conversation in outcome(tmp_path).conversations] == ["chat", "chat~2"]


def test_members_of_a_zip_with_one_name_in_two_folders_are_two_conversations(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "same.zip", "w") as archive:
        for name in ("x/1.txt", "y/1.txt", "y/1.md"):
            archive.writestr(name, f"User: hello from {name}\nAssistant: hello\n")
    conversations = outcome(tmp_path / "same.zip").conversations
    assert [each.id for each in conversations] == ["same/x/1", "same/y/1", "same/y/1~2"]


def test_one_id_in_two_formats_is_two_conversations_with_a_note_that_names_both_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD % ("1", "7") + GOOD % ("1", "7~2"))
    turns = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "good day"}]
    (tmp_path / "b.json").write_text(json.dumps([{"id": "7", "conversations": turns}]))
    result = outcome(tmp_path / "a.jsonl", tmp_path / "b.json")
    assert [(each.id, each.source_format) for each in result.conversations] == [
        ("7", "jsonl"), ("7~2", "jsonl"), ("7~3", "sharegpt")
    ]  # fmt: skip
    assert {message.conversation for message in result.conversations[2].messages} == {"7~3"}
    (note,) = result.problems
    assert (note.kind, note.where) == ("note", "b.json")
    assert "a.jsonl" in note.what
    assert "7~3" in note.remedy


def test_each_of_many_files_counts_its_own_conversations(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.jsonl").write_text(GOOD % ("1", "shared") + GOOD % ("1", f"c{number}"))
    assert [each.conversations for each in outcome(tmp_path).files] == [2] * 30


def test_a_first_record_beyond_the_sample_is_no_reason_to_pass_a_file_over(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD % ("1", "c"))
    (tmp_path / "long.json").write_text(json.dumps([{"extra": "{" * (1 << 17), "text": "x", "author": "kira"}]))
    (tmp_path / "other.json").write_text(json.dumps([{"weather": "fine"}] * 10_000))
    problems = {Path(each.where).name: (each.kind, each.what) for each in outcome(tmp_path).problems}
    assert "long.json" not in problems
    assert problems["other.json"] == ("note", "of no known format, not read")


@pytest.mark.parametrize("before", ["", '"version": 2, "by": "us", '])
def test_conversations_in_an_object_by_their_names_are_told_with_what_to_do(tmp_path: Path, before: str) -> None:
    talk = [{"role": "user", "content": "Hello there."}]
    path = tmp_path / "talks.json"
    path.write_text(f'{{{before}"conversations": {json.dumps({"c1": talk})}}}')
    (problem,) = outcome(path).problems
    assert problem.kind == "file"
    assert problem.remedy == "'conversations' holds an object: make it a list of objects with id and messages"
    path.write_text(json.dumps({"conversations": [{"id": "c1", "messages": talk}]}))
    assert outcome(path).problems == []


def test_one_bad_member_of_a_zip_does_not_stop_the_others(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("a.jsonl", GOOD % ("1", "a"))
        archive.writestr("b.txt", b"\x7fELF" + b"\0" * 100)
        archive.writestr("c.jsonl", GOOD % ("1", "c"))
    result = outcome(tmp_path / "in.zip")
    assert [each.id for each in result.conversations] == ["a", "c"]
    assert [(each.kind, each.where) for each in result.problems] == [("file", "in.zip/b.txt")]


def test_links_and_pipes_in_a_folder_are_told(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "in", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "good.jsonl").write_text(GOOD % ("1", "c"))
    (folder / "linked").symlink_to(elsewhere)
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (folder / "other.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (tmp_path / "secret.jsonl").write_text(GOOD % ("2", "c"))
    os.mkfifo(folder / "pipe.jsonl")
    problems = {Path(each.where).name: (each.kind, each.what) for each in outcome(folder).problems}
    assert problems == {
        "linked": ("note", "a link to a folder, not followed"),
        "other.jsonl": ("note", "a link to a file, not followed"),
        "gone.jsonl": ("file", "a link that leads nowhere"),
        "pipe.jsonl": ("note", "no regular file, not read"),
    }


@pytest.mark.parametrize(
    ("end", "cut"), [("", []), ("\n", []), ('\n{"author": "kira", "te', ["is cut off before its end"]),
                     ('\n{"author": "kira", "te\n', []), ("\n[1]", [])],
)  # fmt: skip
@pytest.mark.parametrize("lines", [["author", "text"], ["role", "content"]])
def test_lines_that_end_within_a_record_are_a_file_that_was_not_read_to_its_end(
    end: str, cut: list[str], lines: list[str], tmp_path: Path
) -> None:
    whole = "\n".join(json.dumps({lines[0]: "user", lines[1]: f"hello {each}"}) for each in range(3))
    (tmp_path / "in.jsonl").write_text(whole + end)
    result = outcome(tmp_path / "in.jsonl")
    assert len(result.only.messages) == 3
    assert result.problem_texts("file") == cut
    assert len(result.problem_texts("record")) == (1 if end.strip() else 0)


def test_an_export_that_is_cut_off_is_a_file_that_was_not_read_to_its_end(tmp_path: Path) -> None:
    whole = json.dumps([{"id": str(each), "author": "kira", "text": "hello"} for each in range(2)])
    (tmp_path / "in.json").write_text(whole[:-8])
    result = outcome(tmp_path / "in.json")
    assert len(result.only.messages) == 1
    assert (len(result.problem_texts("record")), result.problem_texts("file")) == (1, ["is cut off before its end"])


def test_standard_input_is_read() -> None:
    code = "from undersong.formats.ingest import read; print([type(x).__name__ for x in read(['-'])])"
    data = (SAMPLES / "chatgpt" / "conversations.json").read_bytes()
    ran = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert ran.stdout.decode().count("Conversation") == 2


def test_an_unknown_format_name_is_a_usage_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'chatgpt'"):
        list(read([SAMPLES], source_format="chatgtp"))


def test_a_forced_format_that_does_not_fit_is_reported() -> None:
    result = outcome(SAMPLES / "text" / "chat.txt", source_format="chatgpt")
    assert result.conversations == []
    assert "no message could be read as chatgpt" in result.problem_texts("file")


def test_interleaved_conversations_are_put_together_beyond_the_buffer(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    rows = BUFFER * 2 + 10
    path.write_text("".join(GOOD % (number, f"c{number % 7}") for number in range(rows)))
    result = outcome(path)
    assert [conversation.id for conversation in result.conversations] == [f"c{number}" for number in range(7)]
    assert [message.id for message in result.conversations[3].messages] == [str(each) for each in range(3, rows, 7)]
    assert (result.files[0].conversations, result.files[0].messages) == (7, rows)


def test_many_broken_records_are_counted_and_only_some_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(GOOD % ("1", "c") + "{broken\n" * (MOST_REPORTED + 50))
    result = outcome(path)
    assert len(result.problem_texts("record")) == MOST_REPORTED
    assert result.problem_texts("note") == ["50 more records that could not be read"]
    assert result.files[0].skipped == MOST_REPORTED + 50


def test_a_line_of_100_mb_is_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write((GOOD % ("1", "c")).encode() * 100)
        file.write(b'{"author": "kira", "text": "')
        file.seek(100 << 20)
        file.write(b'"}\n' + (GOOD % ("2", "c")).encode())
    messages, memory, problems = measured(path)
    assert messages == 2
    assert problems[0] == "record: line is longer than 32 MiB"
    assert memory < 250


@pytest.mark.parametrize("opening", ['[{"mapping": "', '{"author": "kira", "text": "'])
@pytest.mark.slow
def test_a_file_that_is_one_element_of_100_mb_is_refused_in_bounded_memory(tmp_path: Path, opening: str) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.write(opening.encode() + b"x" * 10_000)
        file.seek(100 << 20)
        file.write(b'"}]')
    messages, memory, problems = measured(path)
    assert messages == 0
    assert any("longer than 32 MiB" in each or "longer than the 32 MiB" in each for each in problems)
    assert memory < 250


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_nesting_a_million_deep_is_reported_and_the_rest_is_read(tmp_path: Path, form: str) -> None:
    deep = "[" * 1_000_000 + "]" * 1_000_000
    row, path = (GOOD % ("1", "c")).strip(), tmp_path / f"deep.{form}"
    path.write_text(f"{row}\n{deep}\n{row}\n" if form == "jsonl" else f"[{row}, {deep}, {row}]")
    result = outcome(path)
    assert len(result.only.messages) == 1
    assert "nested deeper than 200 levels" in result.problem_texts("record")[0]


@pytest.mark.slow
def test_a_zip_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("conversations.json", "w") as member:
        for _ in range(200):
            member.write(b" " * (1 << 20))
    messages, memory, problems = measured(path)
    assert messages == 0
    assert "ZIP bomb" in problems[0]
    assert memory < 200


@pytest.mark.slow
def test_a_large_list_is_read_in_memory_that_does_not_grow_with_it(tmp_path: Path) -> None:
    node = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["word " * 200]}}
    mapping = {str(number): {"id": str(number), "parent": None, "message": node} for number in range(20)}
    sizes = {}
    for count in (200, 3000):
        path = tmp_path / f"{count}.json"
        with path.open("w") as file:
            for number in range(count):
                file.write("[" if number == 0 else ",")
                file.write(json.dumps({"id": str(number), "mapping": mapping}))
            file.write("]")
        messages, sizes[count], problems = measured(path)
        assert (messages, problems) == (count * 20, [])
    assert sizes[3000] < sizes[200] + 60


def test_an_archive_inside_an_archive_is_not_opened(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.jsonl", GOOD % ("1", "c"))
    path = tmp_path / "outer.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
    assert outcome(path).problem_texts("file") == ["1 packed member inside the ZIP, not read: inner.zip"]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("talk.jsonl", GOOD % ("1", "c"))
    assert outcome(path).problem_texts("note") == ["1 packed member inside the ZIP, not read: inner.zip"]


def test_a_file_name_that_is_not_utf8_does_no_harm(tmp_path: Path) -> None:
    path = Path(str(tmp_path) + "/caf\udce9.jsonl")
    path.write_text(GOOD % ("1", "c"))
    (file,) = outcome(tmp_path).files
    assert file.name.endswith("caf\\udce9.jsonl")
    assert isinstance(outcome(tmp_path).only, Conversation)


def test_a_report_does_not_name_the_folders_above_an_absolute_path(tmp_path: Path) -> None:
    """An export lies under a home folder, and the report is shown to others."""
    home = tmp_path / "home" / "jane.doe" / "chats"
    home.mkdir(parents=True)
    (home / "talk.jsonl").write_text(GOOD % ("1", "c"))
    for argument, name in ((home / "talk.jsonl", "talk.jsonl"), (home, "chats/talk.jsonl")):
        items = list(read([argument]))
        assert [each.name for each in items if isinstance(each, InputFile)] == [name]
        (talk,) = [each for each in items if isinstance(each, Conversation)]
        assert str(talk.messages[0].source_ref) == f"{name}:1"


def test_nor_those_above_a_path_that_climbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jane.doe" / "chats"
    (home / "deep").mkdir(parents=True)
    (home / "talk.jsonl").write_text(GOOD % ("1", "c"))
    monkeypatch.chdir(home / "deep")
    arguments = {"../talk.jsonl": "talk.jsonl", "..": "chats/talk.jsonl", "../../chats": "chats/talk.jsonl"}
    for argument, name in arguments.items():
        assert [each.name for each in read([argument]) if isinstance(each, InputFile)] == [name]
    monkeypatch.chdir(home)
    assert [each.name for each in read(["."]) if isinstance(each, InputFile)] == ["talk.jsonl"]


def test_a_folder_with_a_report_of_ours_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(GOOD % ("1", "c"))
    report = tmp_path / "undersong-report"
    report.mkdir()
    (report / "evaluations.jsonl").write_text(GOOD % ("2", "d"))
    assert len(outcome(tmp_path).conversations) == 2
    (report / "manifest.json").write_text('{"schema": "undersong-manifest-1"}')
    result = outcome(tmp_path)
    assert result.only.id == "c"
    assert result.problem_texts("note") == ["a report of undersong, not read"]
    (report / "manifest.json").write_text('{"schema": "a browser extension"}')
    assert len(outcome(tmp_path).conversations) == 2


def test_one_path_may_stand_alone_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(GOOD % ("1", "c"))
    for alone in (str(path), path):
        assert [each.id for each in read(alone) if isinstance(each, Conversation)] == ["c"]
    for empty in ("", [""], [path, ""]):
        with pytest.raises(UsageError, match="empty"):
            list(read(empty))


@pytest.mark.parametrize("wanted", [None, "chatgpt", "text"])
@pytest.mark.parametrize(("start", "kind"), [(b"\x89PNG\r\n\x1a\n", "an image"), (b"%PDF-1.7\n", "a PDF")])
def test_an_image_or_a_pdf_is_named_as_such_in_one_line(
    tmp_path: Path, start: bytes, kind: str, wanted: str | None
) -> None:
    path = tmp_path / "shot"
    path.write_bytes(start + bytes(range(1, 256)) * 400)
    (problem,) = outcome(path, source_format=wanted).problems
    assert problem.kind == "file"
    assert f"this is {kind}" in problem.what
    assert "--from" not in problem.remedy


def test_an_unreadable_path_is_told_in_full(tmp_path: Path) -> None:
    (problem,) = [each for each in read([tmp_path / "nowhere.json"]) if isinstance(each, Problem)]
    assert problem.where == str(tmp_path / "nowhere.json")
