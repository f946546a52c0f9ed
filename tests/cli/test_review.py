"""``undersong review``: a person decides at the terminal, and the decisions survive what may come."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.stores.deeds import NOON, make_finding, row, scans, talk
from tests.stores.test_reviews import make_claim, make_lead
from undersong.cli import cli
from undersong.errors import UsageError
from undersong.models import Quote
from undersong.patterns.catalog import all_rules
from undersong.stores.review_queue import decide, next_places
from undersong.stores.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with twelve findings of a rule that ships, a lead and a claim."""
    place = tmp_path / "undersong.db"
    rule = next(rule for rule in all_rules() if rule.id == "darvo")
    with SQLiteStore(place) as store:
        texts = [f"It was never said, and you know it, {n}" for n in range(12)]
        mine = talk(*texts)
        store.put_conversation(mine, *scans(mine))
        store.append(row(f"m{n}", n, traits={"deception": 0.9, "virtue": 0.9}) for n in range(12))
        store.put_findings([], [
            msgspec.structs.replace(
                make_finding(f"f{n:02}", "c1"), confidence=0.6 + n / 40, rule_hash=rule.hash, message_ids=(f"m{n}",),
                stages=((next(iter(rule.file.define)), f"m{n}"),), message_conversations=("c1",),
            )
            for n in range(12)
        ])  # fmt: skip
        quote = Quote(message_id="m0", text="\x1b[31mred", start=0, end=3, sha256="s")
        store.put_leads([], [msgspec.structs.replace(make_lead(), quotes=(quote,))])
        store.put_claims([], [make_claim()])
    return place


def review(path: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["review", *words, "--store", str(path)], catch_exceptions=False)


def next_id(path: Path) -> str:
    return str(json.loads(review(path, "next", "--json").output)["id"])


def test_the_next_finding_is_shown_with_its_words_the_innocent_reading_and_how_to_answer(path: Path) -> None:
    shown = review(path, "next").output
    name = next_id(path)
    assert shown.startswith("DARVO: is what kira wrote consistent with it?")
    assert f"“It was never said, and you know it, {int(name[1:])}”" in shown
    assert "The innocent reading:" in shown
    assert f"undersong review set {name} rejected --store {path}" in shown
    assert "confidence" not in shown
    assert "confidence: 0." in review(path, "next", "--show-score").output
    assert "\x1b" not in review(path, "next", "--from", "lead").output
    assert "A claim that is contradicted: is that so?" in review(path, "next", "--from", "claim").output


def test_a_person_answers_one_after_the_other_until_nothing_is_left(path: Path) -> None:
    for number in range(12):
        verdict = ("confirmed", "rejected")[number % 3 == 0]
        why = ("--reason", "joke or fiction") if verdict == "rejected" else ()
        done = review(path, "set", next_id(path), verdict, "--reviewer", "ann", *why, "--json")
        assert json.loads(done.output)["drawn"] == "random"
    assert review(path, "next").output == "nothing left to review: 12 findings in “likely”, all decided\n"
    assert "0.67, all are reviewed" in review(path, "stats").output
    (first, *_) = [json.loads(line) for line in review(path, "export").stdout.splitlines()]
    assert (first["reviewer"], first["reasons"]) == ("ann", ["joke or fiction"])


def test_who_erred_withdraws_and_is_asked_again(path: Path) -> None:
    name = next_id(path)
    review(path, "set", name, "rejected", "--reviewer", "ann")
    assert next_id(path) != name
    with pytest.raises(Exception, match="has decided nothing of it"):
        review(path, "withdraw", name)
    assert review(path, "withdraw", name[:16], "--reviewer", "ann").stdout == f"finding {name[:16]} withdrawn\n"
    assert next_id(path) == name
    assert json.loads(review(path, "stats", "--json").stdout)["reviewed"] == 0


def test_stats_say_what_is_not_known(path: Path) -> None:
    assert f"no reviews yet: `undersong review next --store {path}`" in review(path, "stats").output
    for number in range(9):
        if number == 4:
            assert "not known (under five)" in review(path, "stats").output
        review(path, "set", next_id(path), "confirmed")
    shown = review(path, "stats").output
    assert "not known (under ten)" in shown
    assert shown.count("1.00 [0.70, 1.00]") == 2  # findings, and those of the one pattern
    review(path, "set", next_id(path), "rejected")
    assert "0.90 [0.60, 0.98]" in review(path, "stats").output
    figures = json.loads(review(path, "stats", "--json").output)
    assert figures["pools"][0]["value"] == 0.9
    assert [(each["group"], each["decided"]) for each in figures["kinds"]] == [("finding", [0.9, 0.5958, 0.9821])]


def test_a_reason_against_a_finding_does_not_confirm_it_and_no_labels_have_a_reason(path: Path) -> None:
    with pytest.raises(Exception, match="is a reason against it"):
        review(path, "set", "f03", "confirmed", "--reason", "innocent reading")
    assert "0 labels: labels come of decided findings" in review(path, "export", "--labels").output
    assert "rejected --store" in review(path, "next", "--reviewer", "ann").output
    assert "--reviewer ann" in review(path, "next", "--reviewer", "ann").output


def test_what_is_wrong_is_said_with_what_to_do(path: Path) -> None:
    for words, message in (
        (("set", "zz", "confirmed"), "no finding, lead or claim 'zz'"),
        (("set", "f0", "confirmed"), "10 ids begin with 'f0'"),
    ):
        with pytest.raises(Exception, match=message) as error:
            review(path, *words)
        assert f"`undersong review next --store {path}`" in str(error.value)


def test_the_labels_of_reviews_are_those_that_judge_validate_takes(path: Path, tmp_path: Path) -> None:
    review(path, "set", "f03", "confirmed")
    review(path, "set", "f04", "rejected")
    review(path, "set", "f05", "unsure")
    lines = [json.loads(line) for line in review(path, "export", "--labels").stdout.splitlines()]
    assert [(line["text"][-1], line["traits"]) for line in lines] == [
        ("3", {"deception": 1.0}),
        ("4", {"deception": 0.0}),
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = [
        "judge",
        "validate",
        str(tmp_path / "labels.jsonl"),
        "--judge",
        "offline",
        "--store",
        str(tmp_path / "v.db"),
    ]
    validated = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "2 of 2 labelled messages by 1 authors scored" in validated.output


WRITER = """
import sys
from datetime import timedelta
from pathlib import Path
from tests.stores.deeds import NOON
from undersong.stores.review_queue import decide, next_places
from undersong.stores.sqlite import SQLiteStore
with SQLiteStore(Path(sys.argv[1])) as store:
    for minute in range(12):
        (place,) = next_places(store)
        decide(store, place.candidate.item, "confirmed", NOON + timedelta(minutes=minute))
        print(minute + 1, flush=True)
"""


def test_what_was_decided_survives_a_kill_and_the_next_one_goes_on(path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        number = 0
        for line in writer.stdout:
            number = int(line)
            if number == 5:
                os.kill(writer.pid, signal.SIGKILL)
                break
    with SQLiteStore(path) as store:
        reviews = list(store.reviews())
        assert len(reviews) >= number
        assert [each.at for each in reviews] == [NOON + timedelta(minutes=n) for n in range(len(reviews))]
        assert list(store.integrity_errors()) == []
        while places := next_places(store):
            decide(store, places[0].candidate.item, "confirmed", NOON + timedelta(days=1))
        assert len({each.id for each in store.reviews()}) == 12


def keyed(path: Path, *keys: str) -> str:
    """What ``undersong review`` prints on a terminal on which somebody presses these keys, one whenever it waits."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "undersong", "review", "--reviewer", "Ida", "--store", str(path)]
    shown, seen, waiting, pressed = b"", 0, list(keys), ""
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True) as process:
        os.close(slave)
        for _ in range(200):
            if not select.select([master], [], [], 3)[0]:
                os.write(master, pressed.encode())  # pressed before it waited, so it went unheard
                continue
            try:
                shown += os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if waiting and (b"? help\r\n" in shown[seen:] or shown.endswith(b"note: ")):
                seen, pressed = len(shown), waiting.pop(0)
                os.write(master, pressed.encode())
        process.kill() if process.poll() is None and waiting else None
        assert process.wait(20) == 0, shown.decode()
    os.close(master)
    assert waiting == []
    return shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_one_finding_after_the_other_is_decided_by_a_key(path: Path) -> None:
    first = next_id(path)
    shown = keyed(path, "h", "m", "2", "n", "he jokes\n", "r", "s", "c", "b", "u", "?", "q")
    assert "DARVO: is what kira wrote consistent with it?" in shown
    assert "The innocent reading:" in shown
    assert "ikely" in shown
    assert "c1, 12 messages:" in shown
    assert "because: joke or fiction" in shown
    assert "decide anew" in shown
    assert "3 decisions stored" not in shown
    with SQLiteStore(path, read_only=True) as store:
        reviews = list(store.reviews())
    assert [each.verdict for each in reviews] == ["rejected", "confirmed", "unsure"]
    noted = reviews[0]
    assert (noted.id, noted.note, noted.reasons, noted.shown_score) == (first, "he jokes", ("joke or fiction",), True)
    assert noted.drawn == "random"
    assert [each.shown_score for each in reviews[1:]] == [False, False]
    assert reviews[1].id == reviews[2].id != first
    assert {each.reviewer for each in reviews} == {"Ida"}


def test_without_a_terminal_it_says_what_to_call(path: Path) -> None:
    result = CliRunner().invoke(cli, ["review", "--store", str(path)])
    assert isinstance(result.exception, UsageError)
    assert f"`undersong review next --store {path}`" in result.exception.remedy
