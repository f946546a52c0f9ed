"""The router: tiers, thread upgrades, structural flags, reading backwards, the audit sample."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undersong.models import (
    Conversation,
    Deference,
    Hit,
    Loop,
    Message,
    Route,
    Scan,
    ThreadScan,
    ThreadSignal,
)
from undersong.routing.route import Policy, load_policy, route, with_upgrades

POLICY = load_policy()
NO_LOOKING_BACK = msgspec.structs.replace(POLICY, look_back=0, segment=0)
QUIET = Scan(message_id="")


def flagged(count: int, trait: str = "manipulation", label: str = "flattery") -> Scan:
    hits = tuple(Hit(trait=trait, label=label, phrase="x", start=0, end=1) for _ in range(count))
    return Scan(message_id="", hits=hits, flags={trait: count}, total=count)


CONSTRAINT = msgspec.structs.replace(flagged(1, "hard_constraint", "cyberweapons"), hard_constraints=("HC-03",))


def thread(*lines: tuple[str, Scan]) -> tuple[Conversation, tuple[Scan, ...]]:
    messages = tuple(
        Message(id=f"m{place}", conversation="c", position=place, author=who, agent=who, role="agent", text="hello")
        for place, (who, _) in enumerate(lines)
    )
    scans = tuple(msgspec.structs.replace(scan, message_id=f"m{place}") for place, (_, scan) in enumerate(lines))
    return Conversation(id="c", source_format="jsonl", messages=messages), scans


def routes(
    *lines: tuple[str, Scan], policy: Policy = POLICY, signals: tuple[ThreadSignal, ...] = ()
) -> tuple[Route, ...]:
    conversation, scans = thread(*lines)
    return route(conversation, scans, ThreadScan(conversation="c", signals=signals), policy)


@pytest.mark.parametrize(
    ("scan", "tier", "depth", "width"),
    [
        (QUIET, "standard", "skip", "none"),
        (flagged(1), "focused", "standard", "message"),
        (flagged(3), "focused", "standard", "message"),
        (flagged(4), "deep", "thorough", "prior_messages"),
        (CONSTRAINT, "deep_with_context", "thorough", "thread_and_history"),
    ],
)
def test_a_message_alone_is_read_by_its_flags(scan: Scan, tier: str, depth: str, width: str) -> None:
    (only,) = routes(("kira", scan))
    assert (only.tier, only.depth, only.width) == (tier, depth, width)
    assert bool(only.reasons) == (tier != "standard")


def test_the_first_seeds_thread_of_98_messages() -> None:
    """86 / 10 / 1 / 1 before, 86 / 8 / 3 / 1 after one agent's five flags."""
    others = cycle(["ann", "ben", "cyd", "dan"])
    lines = [("kira", flagged(1))] * 5 + [(next(others), flagged(1, f"t{n}")) for n in range(5)]
    lines += [("eve", flagged(4, "deception")), ("fay", CONSTRAINT)] + [(next(others), QUIET) for _ in range(86)]
    result = routes(*lines, policy=NO_LOOKING_BACK)
    assert Counter(each.tier_before for each in result) == Counter(
        {"standard": 86, "focused": 10, "deep": 1, "deep_with_context": 1}
    )
    assert Counter(each.tier for each in result) == Counter(
        {"standard": 86, "focused": 8, "deep": 3, "deep_with_context": 1}
    )
    conversation, _ = thread(*lines)
    assert with_upgrades(ThreadScan(conversation="c"), conversation, result).upgrades == {"kira": 2}


def test_a_third_flagged_message_is_not_yet_a_repeat_but_the_fourth_is() -> None:
    result = routes(*[("kira", flagged(1))] * 4)
    assert [each.tier for each in result] == ["focused", "focused", "focused", "deep"]
    assert "repeat flags: kira was flagged in 3 earlier messages" in result[3].reasons


@pytest.mark.parametrize(
    ("kind", "last"),
    [("escalation", "deep_with_context"), ("trait_concentration", "deep"), ("cycling", "deep_with_context")],
)
def test_a_thread_signal_raises_the_messages_that_carry_it(kind: str, last: str) -> None:
    signal = ThreadSignal(kind=kind, message_ids=("m0", "m2"), trait="manipulation")  # type: ignore[arg-type]
    result = routes(("kira", flagged(1)), ("ann", QUIET), ("kira", flagged(1)), signals=(signal,))
    assert [each.tier for each in result] == ["deep_with_context", "standard", last]
    assert f"thread signal: {kind} on manipulation" in result[2].reasons


def test_what_a_flagged_agent_said_before_is_read_too_but_not_others_and_not_without_bound() -> None:
    result = routes(*[("kira", QUIET)] * 7, ("ann", QUIET), ("kira", flagged(1)))
    assert [each.tier for each in result] == ["standard"] * 2 + ["focused"] * 5 + ["standard", "focused"]
    assert result[2].reasons == ("reading backwards from m8",)


def test_what_comes_after_a_flag_is_not_read_for_it() -> None:
    assert [each.tier for each in routes(("kira", flagged(1)), ("kira", QUIET))] == ["focused", "standard"]


@pytest.mark.parametrize(
    ("scan", "reason"),
    [
        (Scan(message_id="", latency_drop=True), "latency drop"),
        (Scan(message_id="", loops=(Loop(ngram="a b c d", count=3, scope="turns"),)), "loop (3 times)"),
        (Scan(message_id="", deference=Deference(apologies=6, corrections=1, ratio=6.0, high=True)), "High Deference"),
    ],
)
def test_a_structural_flag_routes_its_turn_and_the_segment_around_it(scan: Scan, reason: str) -> None:
    result = routes(*[("ann", QUIET)] * 3, ("bot", scan), *[("ann", QUIET)] * 3)
    assert [each.tier for each in result] == ["standard", *["deep"] * 5, "standard"]
    assert result[3].reasons == (reason,)
    assert result[1].reasons == (f"within 2 of m3: {reason}",)


def test_every_turn_of_a_loop_is_routed_and_its_segment_where_it_begins() -> None:
    looping = Scan(message_id="", loops=(Loop(ngram="a b c d", count=3, scope="turns"),))
    result = routes(*[("bot", QUIET)] * 3, *[("bot", looping)] * 4, *[("ann", QUIET)] * 3)
    assert [each.tier for each in result] == ["standard", *["deep"] * 6, *["standard"] * 3]


def test_a_claim_with_unchanged_code_is_a_candidate_of_false_promise() -> None:
    claim = Hit(trait="structure", label="claim_fixed", phrase="x", start=0, end=1)
    same, new = (Scan(message_id="", hits=(claim,), code_change_delta=delta) for delta in (0.0, 0.4))
    policy = msgspec.structs.replace(POLICY, segment=0)
    result = routes(("bot", same), ("bot", new), ("bot", Scan(message_id="", code_change_delta=0.0)), policy=policy)
    assert [each.tier for each in result] == ["deep", "standard", "standard"]
    assert result[0].reasons == ("candidate of false promise",)


def test_a_deference_that_lasts_is_a_flag_where_it_begins_only() -> None:
    high = Scan(message_id="", deference=Deference(apologies=6, corrections=1, ratio=6.0, high=True))
    result = routes(("bot", high), *[("bot", high)] * 6, policy=msgspec.structs.replace(POLICY, segment=0))
    assert [each.tier for each in result] == ["deep", *["standard"] * 6]


def test_the_audit_sample_keeps_its_tier_and_says_that_it_is_one() -> None:
    conversation, scans = thread(("ann", QUIET), ("kira", flagged(1)))
    quiet, loud = route(conversation, scans, ThreadScan(conversation="c"), NO_LOOKING_BACK, rate=1.0)
    assert (quiet.tier, quiet.sampled, quiet.depth, quiet.reasons) == ("standard", True, "standard", ("audit sample",))
    assert not loud.sampled


@given(st.integers(0, 1000), st.integers(2, 30))
def test_a_draw_depends_on_seed_and_message_alone(seed: int, size: int) -> None:
    whole, scans = thread(*[("ann", QUIET)] * size)
    part = msgspec.structs.replace(whole, messages=whole.messages[:1])
    quiet = ThreadScan(conversation="c")
    assert (
        route(whole, scans, quiet, POLICY, rate=0.5, seed=seed)[0]
        == route(part, scans[:1], quiet, POLICY, rate=0.5, seed=seed)[0]
    )
