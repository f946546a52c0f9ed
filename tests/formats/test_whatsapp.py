"""Exports of WhatsApp: whose words are whose, which number of a date is the day, and what a ZIP of a Mac has beside."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import Outcome, outcome
from undersong.formats.ingest import read
from undersong.formats.sources import DateOrder
from undersong.models import Conversation


def turns(result: Outcome) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in result.only.messages]


@pytest.mark.parametrize(
    ("text", "words", "note"),
    [
        ("see you then \u200e<This message was edited>", "see you then", "edited message, read in its last wording"),
        ("bis dann <Diese Nachricht wurde bearbeitet.>", "bis dann", "edited message, read in its last wording"),
        ("nos vemos <Se editó este mensaje.>", "nos vemos", "edited message, read in its last wording"),
        ("see you then <This message was not edited>", "see you then <This message was not edited>", ""),
        ("the stairs \u200e<attached: 00000012-PHOTO.jpg>", "the stairs", "attached file, not read"),
        ("IMG-20260225-WA0001.jpg (file attached)\nthe stairs", "the stairs", "attached file, not read"),
        ("IMG-20260225-WA0001.jpg (Datei angehängt)\ndie Treppe", "die Treppe", "attached file, not read"),
        ("AUD-20260225.opus (archivo adjunto)", "", "attached file, not read"),
        ("IMG-1.jpg (the one from Rome)\nthe stairs", "IMG-1.jpg (the one from Rome)\nthe stairs", ""),
    ],
)
def test_what_the_messenger_writes_beside_words_is_taken_off_and_noted(
    ingest: Any, text: str, words: str, note: str
) -> None:
    result = ingest(f"25.02.26, 21:14 - Dana: {text}\n25.02.26, 21:15 - Vex: c", "a.txt")
    assert [message.text for message in result.only.messages] == [words, "c"]
    assert result.problem_texts("note") == ([f"1 × {note}"] if note else [])


def test_a_notice_that_quotes_a_colon_is_nobodys_message(ingest: Any) -> None:
    notices = ('Dana changed the subject from "Trip" to "Trip: Rome"', "Dana hat den Betreff zu „Reise: Rom“ geändert",
               "Dana cambió el nombre del grupo a “Viaje: Roma”")  # fmt: skip
    talk = [f"25.02.26, 21:1{number} - {notice}" for number, notice in enumerate(notices)]
    result = ingest("\n".join(["25.02.26, 21:10 - Dana: a", *talk, "25.02.26, 21:16 - Vex: c"]), "a.txt")
    assert turns(result) == [("Dana", "a"), ("Vex", "c")]
    assert result.problem_texts("note") == ["3 × notice of the messenger, not read"]


@pytest.mark.parametrize(
    "notice",
    [
        "Messages and calls are end-to-end encrypted. Only people in this chat can read them.",
        "Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.",
        "Les messages et les appels sont chiffrés de bout en bout.",
    ],
)
def test_the_notice_on_encryption_of_an_iphone_is_nobodys_message(tmp_path: Path, notice: str) -> None:
    home = tmp_path / "WhatsApp Chat - Dana"
    home.mkdir()
    text = f"[25.02.26, 21:14:01] Dana: \u200e{notice}\n[25.02.26, 21:14:05] Dana: is it end-to-end?\n"
    (home / "_chat.txt").write_text(f"{text}[25.02.26, 21:15:05] Vex: c\n")
    result = outcome(tmp_path)
    assert turns(result) == [("Dana", "is it end-to-end?"), ("Vex", "c")]
    assert result.only.id == "WhatsApp Chat - Dana"


@pytest.mark.parametrize(("dates", "day"), [("day-first", "2024-04-03"), ("month-first", "2024-03-04")])
def test_who_knows_the_order_of_a_date_can_say_it(tmp_path: Path, dates: DateOrder, day: str) -> None:
    (tmp_path / "a.txt").write_text(MAYBE)
    (chat,) = (one for one in read(tmp_path, dates=dates) if isinstance(one, Conversation))
    assert str(chat.messages[0].time).startswith(day)


MAYBE = "3/4/24, 21:14 - Dana: a\n3/5/24, 21:15 - Vex: b\n"
DAY_FIRST = "25/3/24, 21:14 - Dana: a\n3/4/24, 21:15 - Kim: b\n"
MONTH_FIRST = "3/25/24, 21:14 - Dana: a\n4/3/24, 21:15 - Kim: b\n"


def outcome_of(tmp_path: Path, *texts: str) -> Outcome:
    for number, text in enumerate(texts):
        (tmp_path / f"WhatsApp Chat {number}.txt").write_text(text)
    return outcome(tmp_path)


@pytest.mark.parametrize(
    ("beside", "day", "words"), [(DAY_FIRST, "2024-04-03", "day"), (MONTH_FIRST, "2024-03-04", "month")]
)
def test_a_date_that_may_be_two_days_is_read_as_in_the_files_beside_it(
    tmp_path: Path, beside: str, day: str, words: str
) -> None:
    result = outcome_of(tmp_path, MAYBE, beside)
    assert str(result.conversations[0].messages[0].time).startswith(day)
    note = f"2 × date that may be day or month first, read as {words} first, as in the files beside it"
    assert result.problem_texts("note") == [note]


def test_where_the_files_beside_it_disagree_a_date_stays_unknown(tmp_path: Path) -> None:
    result = outcome_of(tmp_path, MAYBE, DAY_FIRST, MONTH_FIRST)
    assert [message.time for message in result.conversations[0].messages] == [None, None]


def test_the_chats_in_zips_of_a_folder_are_beside_each_other(tmp_path: Path) -> None:
    for name, text in (("Vex", MAYBE), ("Kim", DAY_FIRST)):
        with zipfile.ZipFile(tmp_path / f"WhatsApp Chat - {name}.zip", "w") as archive:
            archive.writestr("_chat.txt", text)
    result = outcome(tmp_path)
    assert {str(each.messages[0].time)[:10] for each in result.conversations} == {"2024-04-03", "2024-03-25"}


def test_one_message_that_came_late_leaves_the_dates_as_they_are(ingest: Any) -> None:
    days = (*range(1, 13), 9, *range(12, 20))
    lines = [f"{day}/4/24, 09:00 - {'Dana' if number % 2 else 'Vex'}: a" for number, day in enumerate(days)]
    assert {message.time.month for message in ingest("\n".join(lines), "a.txt").only.messages} == {4}


def test_what_a_mac_puts_beside_the_chat_is_noted_and_no_failure(tmp_path: Path) -> None:
    for number in range(2):
        with zipfile.ZipFile(tmp_path / f"WhatsApp Chat - {number}.zip", "w") as archive:
            archive.writestr("_chat.txt", DAY_FIRST)
            archive.writestr("__MACOSX/._chat.txt", b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        ")
    result = outcome(tmp_path / "WhatsApp Chat - 0.zip")
    assert len(result.only.messages) == 2
    assert [(each.kind, each.what) for each in result.problems] == [
        ("note", "1 member of macOS's own (__MACOSX, ._NAME), not read")
    ]
    (tmp_path / "._WhatsApp Chat - 0.zip").write_bytes(b"\x00\x05\x16\x07")
    assert [each.kind for each in outcome(tmp_path).problems] == ["note"] * 3
