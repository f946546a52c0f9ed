"""Inputs are unpacked in bounded memory; what is no text, damaged or a bomb says so."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import threading
import zipfile
from pathlib import Path

import pytest

from undersong.errors import InputError
from undersong.formats.ingest import read
from undersong.formats.sources import OpenInput
from undersong.models import Conversation, Problem


def texts(path: Path) -> dict[str, bytes]:
    with OpenInput(path) as opened:
        return {source.name.removeprefix(str(path)): b"".join(source.chunks()) for source in opened.sources(path.stem)}


def refused(path: Path, data: bytes) -> InputError:
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        texts(path)
    assert error.value.where.startswith(str(path))
    assert error.value.remedy
    return error.value


def zipped(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            undated = zipfile.ZipInfo(name.replace("_", "."))  # a clock in test ids would tell two test workers apart
            archive.writestr(undated, data, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def test_a_file_keeps_its_hash_and_size(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfUser: hi")
    with OpenInput(path) as opened:
        assert (opened.sha256, opened.size) == (hashlib.sha256(path.read_bytes()).hexdigest(), 11)
    assert texts(path) == {"": b"User: hi"}


def test_what_is_appended_after_opening_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    with OpenInput(path) as opened:
        with path.open("ab") as more:
            more.write(b'{"b": 2}\n')
        assert [b"".join(source.chunks()) for source in opened.sources("a")] == [b'{"a": 1}\n']


def test_gzip_and_zip_are_known_by_content(tmp_path: Path) -> None:
    path = tmp_path / "noname"
    path.write_bytes(gzip.compress(b"one") + gzip.compress(b"two"))
    assert texts(path) == {"": b"onetwo"}
    path.write_bytes(zipped(b_json=b"B", a_jsonl=b"A", picture_png=b"P", empty_json=b""))
    assert texts(path) == {"/a.jsonl": b"A", "/b.json": b"B"}


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"User: hi",))
    writer.start()
    assert texts(path) == {"": b"User: hi"}
    writer.join()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"SQLite format 3\0" + b"\0" * 100, "an SQLite database"),
        (b"\x7fELF" + b"\0" * 100, "binary data"),
        (b"PK\x03\x04 not a zip", "damaged ZIP"),
        (zipped(a_json=b"{}" * 500)[:-30], "damaged ZIP"),
        (gzip.compress(b"User: hi" * 999, mtime=0)[:-12], "cannot be read to its end"),
        (b"\x1f\x8b\x08\x00broken-gzip-data", "cannot be read to its end"),
    ],
)
def test_what_is_no_utf8_text_or_damaged_is_refused(tmp_path: Path, data: bytes, expected: str) -> None:
    assert expected in refused(tmp_path / "a.json", data).what


WORDS = "User: ¿Café – 10 €?\nAssistant: “Sí”, señor.\n"


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16-LE"), ("utf-16-be", "UTF-16-BE"), ("utf-32", "UTF-32"),
     ("cp1252", "Windows-1252")],
)  # fmt: skip
def test_another_encoding_is_recognised_and_said(tmp_path: Path, encoding: str, name: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(WORDS.encode(encoding))
    assert texts(path) == {"": WORDS.encode()}
    (problem,) = (each for each in read(path) if isinstance(each, Problem))
    assert (problem.kind, problem.what) == ("note", f"is {name}, not UTF-8, and read as such")


def test_a_device_and_a_pipe_without_a_writer_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undersong.formats.sources.PIPE_WAIT", 0.1)
    monkeypatch.setattr("undersong.formats.sources.COPY_MOST", 1 << 20)
    os.mkfifo(tmp_path / "pipe")
    for path, what in (("/dev/zero", "a device or folder"), (str(tmp_path / "pipe"), "nothing was written")):
        with pytest.raises(InputError, match=what):
            texts(Path(path))
    writer = threading.Thread(target=flood, args=(tmp_path / "pipe",))
    writer.start()
    with pytest.raises(InputError, match="GiB come out of it"):
        texts(tmp_path / "pipe")
    writer.join()


def flood(pipe: Path) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.write_bytes(b"User: hi\n" * 10**6)


def test_an_encrypted_member_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    path, data = tmp_path / "a.zip", bytearray(zipped(a_txt=b"User: hi\nAssistant: hello", b_txt=b"secret"))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rindex(signature) + flags] |= 1
    path.write_bytes(bytes(data))
    items = list(read(path))
    assert [len(each.messages) for each in items if isinstance(each, Conversation)] == [2]
    (problem,) = (each for each in items if isinstance(each, Problem))
    assert (problem.kind, problem.what) == ("file", "1 member encrypted, not read: b.txt")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.gz"])
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    zeros = b" " * (80 << 20)
    data = zipped(a_json=zeros) if name.endswith("zip") else gzip.compress(zeros)
    assert "more than 200 times its size" in refused(tmp_path / name, data).what


def test_a_zip_that_lies_about_the_size_of_its_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped(a_json=b" " * (80 << 20)))
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(signature) + place
        data[at : at + 4] = (1000).to_bytes(4, "little")
    assert refused(tmp_path / "liar.zip", bytes(data)).what


@pytest.mark.parametrize("name", ["missing.json", "nul\0byte.json"])
def test_a_path_that_cannot_be_opened_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        OpenInput(tmp_path / name)
