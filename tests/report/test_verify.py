"""Verify: an untouched report agrees, and whatever changed is named."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from undersong.core.manifest import canonical, digest_of
from undersong.errors import UsageError
from undersong.models import Case, InputFile, Problem, Row
from undersong.report.writer import write
from undersong.verify import Discrepancy, verify

Make = Callable[..., tuple[Case, list[Row]]]
CHANGES = 200
INSTALLED = {"rules/love_bombing.yaml": "a" * 64}


@pytest.fixture
def report(make_case: Make, tmp_path: Path) -> tuple[Path, Path]:
    """A report folder and the input that it was made from."""
    source = tmp_path / "in" / "export.jsonl"
    source.parent.mkdir()
    source.write_bytes(b'{"id": "m1", "text": "hello"}\n' * 20)
    case, rows = make_case()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    case = msgspec.structs.replace(
        case, inputs=(InputFile(name="export.jsonl", sha256=digest, size=9, source_format=None),)
    )
    write(case, rows, tmp_path / "out", run={"seconds": 1})
    return tmp_path / "out", source


def says(discrepancies: tuple[Discrepancy, ...]) -> str:
    """All lines."""
    return "\n".join(map(str, discrepancies))


def reseal(folder: Path, **changes: object) -> None:
    """Change keys of the manifest and give it a right digest again."""
    value = json.loads((folder / "manifest.json").read_bytes()) | changes
    (folder / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))


def test_an_untouched_report_agrees(report: tuple[Path, Path]) -> None:
    folder, source = report
    assert verify(folder, [source], INSTALLED) == ()
    assert verify(folder, [source.parent], INSTALLED) == ()
    assert verify(folder, installed=INSTALLED) == ()


def test_two_hundred_single_bytes_changed_are_two_hundred_times_named(report: tuple[Path, Path]) -> None:
    folder, source = report
    covered = (path for path in folder.iterdir() if path.name != "run.json" and path.stat().st_size)
    files = [*sorted(covered), source]
    chance = random.Random(20260301)
    for _ in range(CHANGES):
        path = chance.choice(files)
        before = path.read_bytes()
        place = chance.randrange(len(before))
        after = bytearray(before)
        after[place] ^= chance.randrange(1, 256)
        path.write_bytes(after)
        discrepancies = verify(folder, [source], INSTALLED)
        assert any(path.name in each.where for each in discrepancies), f"byte {place} of {path.name} went unnoticed"
        path.write_bytes(before)
    assert verify(folder, [source], INSTALLED) == ()


def test_a_digest_that_was_kept_elsewhere_exposes_a_report_that_was_sealed_again(report: tuple[Path, Path]) -> None:
    folder, _ = report
    digest = json.loads((folder / "manifest.json").read_bytes())["digest"]
    for form in (digest, digest[:16], f"{digest[:16]}…", digest.upper()):
        assert verify(folder, installed=INSTALLED, digest=form) == ()
    (folder / "report.html").write_bytes(b"another page")
    value = json.loads((folder / "manifest.json").read_bytes())
    value["files"]["report.html"]["sha256"] = hashlib.sha256(b"another page").hexdigest()
    reseal(folder, files=value["files"])
    assert verify(folder, installed=INSTALLED) == ()
    assert "another report, or this one sealed again" in says(verify(folder, installed=INSTALLED, digest=digest[:16]))


@pytest.mark.parametrize("digest", ["", "abc", "z" * 16, "a" * 65])
def test_a_digest_that_is_none_is_refused(report: tuple[Path, Path], digest: str) -> None:
    with pytest.raises(UsageError, match="is not a digest"):
        verify(report[0], installed=INSTALLED, digest=digest)


def test_what_an_audit_never_reads_raises_no_alarm(report: tuple[Path, Path]) -> None:
    folder, source = report
    for name in ("page.html", "undersong.db", "notes.docx"):
        (source.parent / name).write_text("x")
    folder.rename(source.parent / "undersong-report")
    assert verify(source.parent / "undersong-report", [source.parent], INSTALLED) == ()
    (source.parent / "new.jsonl").write_text("{}")
    output = says(verify(source.parent / "undersong-report", [source.parent], INSTALLED))
    assert "new.jsonl: is not an input of this report" in output


def test_a_file_that_could_not_be_read_raises_no_alarm_either(make_case: Make, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "broken.zip").write_bytes(b"no archive")
    case, rows = make_case()
    problems = (Problem(what="is no ZIP", where="in/broken.zip", kind="file"),)
    write(msgspec.structs.replace(case, inputs=(), problems=problems), rows, tmp_path / "out")
    assert verify(tmp_path / "out", [tmp_path / "in"], INSTALLED) == ()


def test_files_of_one_name_in_two_folders_are_told_apart(make_case: Make, tmp_path: Path) -> None:
    made = []
    for name in ("in/a/talk.jsonl", "in/b/talk.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        made.append(InputFile(name=name, sha256=digest, size=9, source_format=None))
    case, rows = make_case()
    write(msgspec.structs.replace(case, inputs=tuple(made)), rows, tmp_path / "out")
    assert verify(tmp_path / "out", [tmp_path / "in"], INSTALLED) == ()
    moved = (tmp_path / "in").rename(tmp_path / "elsewhere")
    assert verify(tmp_path / "out", [moved], INSTALLED) == ()
    assert verify(tmp_path / "out", [moved / "b", moved / "a"], INSTALLED) == ()
    (moved / "b" / "talk.jsonl").write_text("changed")
    (discrepancy,) = verify(tmp_path / "out", [moved], INSTALLED)
    assert (discrepancy.what, discrepancy.where) == ("input has changed", "in/b/talk.jsonl")


def test_run_times_are_not_covered(report: tuple[Path, Path]) -> None:
    folder, source = report
    (folder / "run.json").write_text("{}")
    assert verify(folder, [source], INSTALLED) == ()


@pytest.mark.parametrize("name", ["report.html", "case.json", "findings.jsonl", "evaluations.jsonl"])
def test_a_missing_file_is_named(report: tuple[Path, Path], name: str) -> None:
    (report[0] / name).unlink()
    assert f"{name}: is missing" in says(verify(report[0], installed=INSTALLED))


def test_a_file_that_was_added_is_named(report: tuple[Path, Path]) -> None:
    (report[0] / "extra.txt").write_text("x")
    assert says(verify(report[0], installed=INSTALLED)) == "extra.txt: is not in the manifest"


BROKEN = [
    (b"", "not valid JSON"),
    (b"\xff\xfe", "not UTF-8"),
    (b"{", "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b"[]", "not a report that undersong wrote"),
    (b'{"schema": "other"}', "not a report that undersong wrote"),
    (b'{"schema": NaN}', "not valid JSON"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN)
def test_a_broken_manifest_is_named_without_a_traceback(report: tuple[Path, Path], data: bytes, words: str) -> None:
    (report[0] / "manifest.json").write_bytes(data)
    assert words in says(verify(report[0], installed=INSTALLED))


def test_a_folder_without_a_manifest_is_named(tmp_path: Path) -> None:
    assert says(verify(tmp_path)) == "manifest.json: is missing"
    with pytest.raises(UsageError, match="no such folder"):
        verify(tmp_path / "nowhere")


def test_a_manifest_of_the_same_meaning_in_another_form_is_named(report: tuple[Path, Path]) -> None:
    path = report[0] / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))
    assert says(verify(report[0], installed=INSTALLED)) == "manifest.json: is not in its canonical form"


def test_a_right_digest_over_a_wrong_form_is_named(report: tuple[Path, Path]) -> None:
    reseal(report[0], files=[])
    assert "does not have the form of a manifest" in says(verify(report[0], installed=INSTALLED))


def test_a_path_out_of_the_folder_is_not_followed(report: tuple[Path, Path]) -> None:
    value = json.loads((report[0] / "manifest.json").read_bytes())
    files = value["files"] | {"../in/export.jsonl": {"sha256": "0" * 64, "size": 1}}
    reseal(report[0], files=files)
    assert "is a file outside the report folder" in says(verify(report[0], installed=INSTALLED))


def test_a_changed_input_a_missing_one_and_a_strange_one_are_named(report: tuple[Path, Path]) -> None:
    folder, source = report
    source.write_bytes(source.read_bytes() + b"\n")
    assert "export.jsonl: input has changed" in says(verify(folder, [source], INSTALLED))
    strange = source.with_name("other.jsonl")
    strange.write_text("x")
    output = says(verify(folder, [strange], INSTALLED))
    assert "export.jsonl: input was not given by this name (expected " in output
    assert "found )" not in output
    assert "other.jsonl: is not an input of this report" in output


def test_an_input_that_is_not_there_is_named(report: tuple[Path, Path]) -> None:
    (discrepancy,) = verify(report[0], [report[1].parent / "gone" / "export.jsonl"], INSTALLED)
    assert discrepancy.what == "no such file"


def test_a_renamed_input_is_known_by_its_content(report: tuple[Path, Path]) -> None:
    folder, source = report
    other = source.rename(source.with_name("export (1).jsonl"))
    (discrepancy,) = verify(folder, [other], INSTALLED)
    assert "same content under another name" in discrepancy.what
    assert (discrepancy.expected, discrepancy.found) == ("export.jsonl", "export (1).jsonl")
    other.write_bytes(b"something else")
    assert "was not given by this name" in says(verify(folder, [other], INSTALLED))


@pytest.mark.parametrize(
    ("installed", "words"),
    [({}, "is not installed here"), ({"rules/love_bombing.yaml": "b" * 64}, "made with another version")],
)
def test_another_rule_is_named(report: tuple[Path, Path], installed: dict[str, str], words: str) -> None:
    assert f"rules/love_bombing.yaml: {words}" in says(verify(report[0], installed=installed))


def test_another_version_is_named(report: tuple[Path, Path]) -> None:
    reseal(report[0], version="0.0.9")
    assert "undersong: made with another version (expected 0.0.9" in says(verify(report[0], installed=INSTALLED))


def test_a_quote_that_was_altered_with_matching_file_hashes_is_named(report: tuple[Path, Path]) -> None:
    folder = report[0]
    forged = (folder / "findings.jsonl").read_bytes().replace(b"better than anyone", b"worse  than anyone")
    (folder / "findings.jsonl").write_bytes(forged)
    value = json.loads((folder / "manifest.json").read_bytes())
    value["files"]["findings.jsonl"]["sha256"] = hashlib.sha256(forged).hexdigest()
    reseal(folder, files=value["files"])
    assert says(verify(folder, installed=INSTALLED)) == "forum-0: quote does not stand in its message"


def test_a_message_that_was_altered_with_matching_file_hashes_is_named(report: tuple[Path, Path]) -> None:
    folder = report[0]
    forged = (folder / "case.json").read_bytes().replace(b"I tell everyone", b"I told everyone")
    (folder / "case.json").write_bytes(forged)
    value = json.loads((folder / "manifest.json").read_bytes())
    value["files"]["case.json"]["sha256"] = hashlib.sha256(forged).hexdigest()
    reseal(folder, files=value["files"])
    assert "forum-2: cited message does not agree with its hash" in says(verify(folder, installed=INSTALLED))
