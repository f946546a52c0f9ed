"""What a page says to the person who decides: which rule, which stages, in which order, and what suffices."""

from __future__ import annotations

from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.responses import Response

from tests.serve.conftest import Client, running
from tests.serve.world import conversation, finding_of
from undersong.models import Finding, Scan, ThreadScan
from undersong.patterns.catalog import all_rules
from undersong.report.stage_book import stage_book
from undersong.serve import evidence
from undersong.serve.actions import ReviewTrail, _remember
from undersong.serve.evidence import ContextTurn
from undersong.serve.library import Library
from undersong.serve.pattern_words import (
    any_order,
    asked_stages,
    enough_words,
    found_by,
    plain,
    rule_paragraphs,
    stage_names,
    stage_words,
)
from undersong.serve.settings import ServeSettings
from undersong.stores.sqlite import SQLiteStore

TALK = conversation(1, 12).messages
RULES = {rule.id: rule for rule in all_rules()}


def finding(rule: str, *stages: str, read: bool = False, **other: Any) -> Finding:
    """A finding of a rule with these stages, one a message."""
    made = finding_of(conversation(1, 12), 0)
    own = tuple((stage, message) for stage, message in zip(stages, made.message_ids, strict=False))
    measures = {"certainty": 3.0} if read else {"strength": 0.7}
    return msgspec.structs.replace(
        made, pattern=RULES[rule].pattern, rule_hash=RULES[rule].hash, title=RULES[rule].file.title, stages=own,
        measures=measures, **other,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "read", "words"),
    [
        ("darvo", False, "found by the main rule"),
        ("darvo_by_indicators", False, "found by the rule “by indicators”"),
        ("darvo_by_sums", False, "found by the rule “by sums”"),
        ("darvo_by_indicators", True, "found by reading the whole sequence"),
        ("darvo_slow", False, "found by the main rule"),  # a pattern of its own, with a title of its own
    ],
)
def test_findings_of_one_title_say_which_rule_found_them(rule: str, read: bool, words: str) -> None:
    assert found_by(finding(rule, "DENY", read=read)) == words


def test_a_rule_of_another_version_is_said_to_be_one() -> None:
    other = msgspec.structs.replace(finding("darvo", "DENY"), rule_hash="0" * 64)
    assert found_by(other) == "found by a rule that is not among those of today"


@pytest.mark.parametrize(
    ("rule", "read", "stages", "names"),
    [
        ("con_game", False, ("RAPPORT", "STING"), ("rapport", "tale", "ask")),  # in the words for readers
        ("con_game_by_indicators", True, ("ask",), ("rapport", "tale", "ask")),  # those of the reader
        ("sabotage_ramp", False, ("STEP",), ("small step", "trusted work", "larger step")),
        ("dependency_loop_by_indicators", False, ("HELP", "CUT"), ("help", "closeness", "distance", "lock")),
        ("love_bombing_slow", False, ("TURN",), ("praise", "turn")),
        ("sabotage_ramp_by_indicators", True, ("small step",), ("trusted work", "small step", "larger step")),
        ("darvo_by_indicators", True, (), ("deny", "attack", "reverse")),
    ],
)
def test_every_stage_of_the_pattern_is_named_seen_or_not(
    rule: str, read: bool, stages: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert stage_names(finding(rule, *stages, read=read)) == names


def test_what_suffices_to_confirm_names_the_stages_and_the_speaker() -> None:
    words = enough_words(finding("con_game", "RAPPORT"), "talk-00001")
    assert words == "Enough to confirm: what ada wrote shows rapport, tale and ask, whichever messages they are in."


def test_no_word_of_a_rule_needs_its_file_or_its_thresholds() -> None:
    for name in RULES:
        for line in rule_paragraphs(finding(name)):
            assert not any(part in line for part in (" .", "docs/", ".md", "bench/", "PAT-")), (name, line)
            assert line.rstrip(".")[-1:].isalnum(), (name, line)
    assert (
        plain("It asks for flattery. Manipulation past .45 counts. See docs/benchmark.md.") == "It asks for flattery."
    )
    assert plain("Help first (goodwill of .6 and more), then closeness.") == "Help first, then closeness."


def test_a_rule_that_takes_its_stages_in_any_order_says_nothing_of_another_order() -> None:
    assert any_order(finding("dependency_loop_by_indicators")) is (
        "PERMUTE" in RULES["dependency_loop_by_indicators"].file.pattern
    )
    assert not any_order(finding("con_game"))


def test_where_the_conversation_has_another_order_than_the_pattern_it_is_said() -> None:
    made = finding("con_game", "TALE", "RAPPORT", "STING")
    turns = [
        ContextTurn(message, (), stage=stage.lower()) for (stage, _), message in zip(made.stages, TALK, strict=False)
    ]
    stages = evidence.stages_seen(made, {}, turns[:2])
    assert [(stage.name, len(stage.turns)) for stage in stages] == [("tale", 1), ("rapport", 1), ("ask", 0)]
    assert evidence.order_words(made, stages) == "The pattern has them in another order: rapport, tale."
    assert evidence.order_words(made, evidence.stages_seen(made, {}, turns[1:])) == ""


@pytest.mark.parametrize(
    ("length", "own", "hidden"),
    [
        (40, (2, 38), 0),  # whole
        (60, (20, 30), 54),  # but for each with what stands around it
        (60, (5, 10), 43),  # never fewer than three lines, and 9 are not on the page
        (41, tuple(range(1, 39, 2)), 0),
    ],
)
def test_a_conversation_stands_whole_up_to_forty_messages(
    tmp_path: Path, length: int, own: tuple[int, ...], hidden: int
) -> None:
    talk = conversation(2, length)
    with SQLiteStore(tmp_path / "s.db") as store:
        scans = tuple(Scan(message_id=message.id) for message in talk.messages)
        store.put_conversation(talk, scans, ThreadScan(conversation=talk.id))
    library = Library(ServeSettings(store=tmp_path / "s.db"))
    turns = {talk.messages[place].id: ContextTurn(talk.messages[place], (), stage="rapport") for place in own}
    blocks = evidence.blocks_around(library, talk.id, turns)
    library.close()
    assert sum(len(block.turns) for block in blocks if block.folded) == hidden
    assert sum(len(block.turns) + block.skipped for block in blocks) == length


def test_what_is_cut_hides_three_lines_or_more() -> None:
    def rest(words: int) -> bool:
        message = msgspec.structs.replace(TALK[0], text="word " * words)
        return bool(evidence.message_beside(message, whole=False).rest)

    assert [rest(words) for words in (10, 85, 110, 300)] == [False, False, True, True]
    assert not evidence.message_beside(msgspec.structs.replace(TALK[0], text="word " * 300), whole=True).rest


def test_one_key_gives_a_verdict_with_its_reason_and_no_address_grows(client: Client, store: Path) -> None:
    jar: dict[str, str] = {}

    def ask(path: str, form: str = "") -> str:
        cookie = "; ".join(f"{name}={value}" for name, value in jar.items())
        answer = client.form(path, form, Cookie=cookie) if form else client.get(path, Cookie=cookie)
        parsed = SimpleCookie(answer.headers.get("set-cookie", "").replace("HttpOnly, ", "HttpOnly; "))
        jar.update({name: morsel.value for name, morsel in parsed.items() if name.startswith("undersong")})
        return answer.headers.get("location", "") or answer.text

    def asked(page: str) -> str:
        return page.partition('name="id" value="')[2].partition('"')[0]

    page, lengths = ask("/review"), list[int]()
    assert "Your name, which is kept with your decisions" in page
    assert "hidden until you decide" in page
    assert 'class="badge critical"' not in page.partition("data-sure hidden")[0]
    first = asked(page)
    location = ask("/reviews", f"kind=finding&id={first}&with=another+pattern&back=/review&reviewer=Zo%C3%AB")
    page = ask(location)
    assert "Your name, which is kept with your decisions" not in page
    for shortcut in ("right,+but+some+quotes+are+wrong", "another+pattern"):
        skipped = asked(page)
        page = ask(f"/review?skip={skipped}")
        assert asked(page) != skipped
        assert f'href="/review?id={skipped}" data-key="b k"' in page
        location = ask("/reviews", f"kind=finding&id={asked(page)}&with={shortcut}&back=/review")
        lengths.append(len(location))
        page = ask(location)
    assert len(set(lengths)) == 2
    assert max(lengths) < 90
    with SQLiteStore(store, read_only=True) as opened:
        reviews = list(opened.reviews())
    assert [(each.verdict, each.reasons, each.reviewer) for each in reviews] == [
        ("rejected", ("another pattern",), "Zoë"),
        ("confirmed", ("right, but some quotes are wrong",), ""),
        ("rejected", ("another pattern",), ""),
    ]


def test_the_first_page_hides_how_sure_the_program_is_until_somebody_asks(client: Client, store: Path) -> None:
    hidden = client.get("/").text
    assert hidden.count("hidden until you decide") == 5
    assert "of 10 such findings" not in hidden
    shown = client.get("/?sure=1")
    assert "hidden until you decide" not in shown.text
    assert "undersong_sure=1" in shown.headers["set-cookie"]
    review = client.get("/review", Cookie="undersong_sure=1").text
    assert "hidden until you decide" not in review
    assert 'name="shown_score" value="1"' in review  # and the decision says so
    with running(ServeSettings(store=store, read_only=True)) as reading:
        assert "hidden until you decide" not in reading.get("/").text


def test_every_stage_of_a_shipped_rule_has_words_and_every_name_for_readers_is_one_of_theirs() -> None:
    for name in (name for name in RULES if not name.endswith("_literal")):
        made = finding(name, "")
        assert [stage for stage in asked_stages(made) if stage and not stage_words(made).get(stage)] == [], name
    for pattern, names in stage_book().readers.items():
        shape = RULES[pattern].file.reading
        assert shape is not None
        assert set(names.values()) <= {stage.name for stage in shape.stages}


def test_many_long_names_that_were_passed_fit_into_a_cookie_the_last_ones_first() -> None:
    names = tuple(f"lead:{'ü.' * 30}{n}" for n in range(30))
    answer = _remember(Response(), "lead", ReviewTrail(names, names[:2]))
    stored = answer.headers["set-cookie"]
    assert len(stored.partition(";")[0]) < 3_100
    assert stored.partition(";")[0].endswith("29")
