"""Near-identical replies, echoes, and A-B-A-B."""

from __future__ import annotations

import pytest

from tests.scan.dialogue import scans
from undersong.models.row import DEATH_SPIRAL, turn_flags

ONE = "The crane is repaired, the log is attached and the harbour opens again at nine tomorrow."
OTHER = "Please check the cable first, then the winch, and tell me what the display of the motor shows."
NEARLY = "The crane is repaired, the log is attached and the harbour opens again at ten tomorrow."
FAR = "The crane is broken, no log was attached and the harbour stays closed until ten tomorrow."
Told = list[tuple[str, int, tuple[str, ...]]]


def reply_loops(*lines: str) -> list[Told]:
    return [
        [(loop.scope, loop.count, loop.message_ids) for loop in one.loops if loop.scope not in ("message", "turns")]
        for one in scans(*lines)
    ]


@pytest.mark.parametrize(
    ("second", "alike"),
    [
        (ONE, True),
        (NEARLY, True),
        (f"> {OTHER}\n\n{NEARLY}", True),
        (f"{NEARLY}\n```\nx = 1\n```\n", True),
        (f"{NEARLY} Let me know if you have any questions.", True),
        (FAR, False),
        (f"{NEARLY} {OTHER}", False),
        (f"> {ONE}", False),
    ],
)
def test_a_reply_is_alike_an_earlier_one_if_nine_words_in_ten_are(second: str, alike: bool) -> None:
    assert reply_loops(f"assistant: {ONE}", "user: no", f"assistant: {second}") == [
        [],
        [],
        [("reply", 2, ("m0", "m2"))] if alike else [],
    ]


def test_short_replies_are_alike_by_chance_and_not_told() -> None:
    assert reply_loops(*["assistant: Thank you so much, that is great."] * 3) == [[], [], []]


def test_a_chain_of_alike_replies_is_counted() -> None:
    assert reply_loops(*[f"assistant: {ONE}"] * 3)[2] == [("reply", 3, ("m0", "m1", "m2"))]


def test_replies_of_two_agents_are_no_reply_but_one_after_the_other_is_an_echo() -> None:
    assert reply_loops(f"kira: {ONE}", f"bicep: {NEARLY}") == [[], [("echo", 2, ("m0", "m1"))]]
    assert reply_loops(f"kira: {ONE}", "ann: well", f"bicep: {NEARLY}") == [[], [], []]


def test_a_reply_is_compared_with_the_last_three_turns_of_its_agent() -> None:
    between = ["assistant: One.", "assistant: Two.", "assistant: Three."]
    assert reply_loops(f"assistant: {ONE}", *between[:2], f"assistant: {ONE}")[-1] == [("reply", 2, ("m0", "m3"))]
    assert reply_loops(f"assistant: {ONE}", *between, f"assistant: {ONE}")[-1] == []


def test_one_agent_alternates() -> None:
    loops = reply_loops(*[f"assistant: {text}" for text in (ONE, OTHER, NEARLY, OTHER, ONE)])
    assert [scope for scope, _, _ in loops[2]] == ["reply"]
    assert ("alternation", 2, ("m0", "m1", "m2", "m3")) in loops[3]
    assert ("alternation", 2, ("m0", "m1", "m2", "m3", "m4")) in loops[4]


def test_two_agents_alternate() -> None:
    loops = reply_loops(f"kira: {ONE}", f"bicep: {OTHER}", f"kira: {ONE}", f"bicep: {OTHER}")
    assert loops[2] == [("reply", 2, ("m0", "m2"))]
    assert loops[3] == [("reply", 2, ("m1", "m3")), ("alternation", 2, ("m0", "m1", "m2", "m3"))]


def test_one_reply_again_and_again_does_not_alternate() -> None:
    assert all(scope == "reply" for found in reply_loops(*[f"assistant: {ONE}"] * 5) for scope, _, _ in found)


def test_a_tool_repeats_nobody() -> None:
    assert reply_loops(*[f"tool: {ONE}"] * 3) == [[], [], []]


def test_an_echo_is_no_death_spiral_and_a_reply_is() -> None:
    echo, reply = scans(f"kira: {ONE}", f"bicep: {ONE}")[1], scans(f"kira: {ONE}", "ann: no", f"kira: {ONE}")[2]
    assert turn_flags(echo) == ()
    assert turn_flags(reply) == (DEATH_SPIRAL,)


def test_a_request_that_is_declined_again_is_held_and_no_death_spiral() -> None:
    no = "I'm sorry, but I can’t help with opening a door that is not your own."
    last = scans("ann: go on", f"kira: {no}", "ann: please", f"kira: {no}", "ann: now", f"kira: {no}")[5]
    assert [(loop.scope, loop.count) for loop in last.loops if loop.scope != "turns"] == [("held", 3)]
    assert turn_flags(last) == ()
    stuck = no.replace("can’t help with", "am still at work on")
    again = scans("ann: go on", f"kira: {stuck}", "ann: please", f"kira: {stuck}")[3]
    assert turn_flags(again) == ("Death Spiral",)
