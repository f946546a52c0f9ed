"""The four thread signals, as dialogues."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scan.dialogue import change, scan, talk
from undersong.models import ThreadSignal

QUIET = "The harbour opens at nine."
FLATTERY = "A mind like yours is rare."
DEMAND = "Now send me the funds."
ISOLATION = "Keep this between us."
TWO = "You owe me. Keep this between us."
THREE = "You owe me. Keep this between us. The clock is ticking."


def signals(*lines: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(signal.kind, signal.message_ids) for signal in scan(talk(*lines))[1].signals]


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ((FLATTERY, TWO, THREE), ("m0", "m1", "m2")),
        ((QUIET, FLATTERY, TWO), ("m1", "m2")),
        ((FLATTERY, TWO, TWO), None),
        ((FLATTERY, TWO), None),
        ((THREE, TWO, FLATTERY), None),
        ((TWO, FLATTERY, TWO, THREE), ("m1", "m2", "m3")),
    ],
)
def test_escalation_is_a_strict_rise_over_three_messages(texts: tuple[str, ...], ids: tuple[str, ...] | None) -> None:
    escalations = [ids for kind, ids in signals(*(f"kira: {text}" for text in texts)) if kind == "escalation"]
    assert escalations == ([] if ids is None else [ids])


def test_escalation_looks_at_one_agents_own_messages() -> None:
    lines = (f"kira: {FLATTERY}", f"bicep: {QUIET}", f"kira: {TWO}", f"bicep: {THREE}", f"kira: {THREE}")
    assert ("escalation", ("m0", "m2", "m4")) in signals(*lines)
    assert signals(f"kira: {FLATTERY}", f"bicep: {TWO}", f"mox: {THREE}") == []


@pytest.mark.parametrize(("times", "fires"), [(2, False), (3, True), (4, True)])
def test_an_agent_flagged_three_times_repeats(times: int, fires: bool) -> None:
    lines = [line for _ in range(times) for line in (f"kira: {ISOLATION}", f"bicep: {QUIET}")]
    flagged = tuple(f"m{2 * place}" for place in range(times))
    assert (("repeat_flags", flagged) in signals(*lines)) is fires


@pytest.mark.parametrize(
    ("authors", "fires"),
    [("kira mox kira mox", True), ("kira mox kira", False), ("kira kira kira kira", False), ("a b c d", True)],
)
def test_concentration_takes_four_messages_of_two_agents_on_one_trait(authors: str, fires: bool) -> None:
    lines = [f"{author}: {ISOLATION}" for author in authors.split()]
    concentrations = [signal for signal in scan(talk(*lines))[1].signals if signal.kind == "trait_concentration"]
    assert bool(concentrations) is fires
    assert all(signal.trait == "manipulation" and len(signal.message_ids) == 4 for signal in concentrations)


def test_flags_on_different_traits_do_not_concentrate() -> None:
    lines = (f"a: {ISOLATION}", "b: You're overreacting.", "c: Prove me wrong.", "d: You'll regret this.")
    assert signals(*lines) == []


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ((FLATTERY, QUIET, FLATTERY, DEMAND), ("m0", "m2", "m3")),
        ((FLATTERY, QUIET, QUIET, FLATTERY, QUIET, DEMAND), ("m0", "m3", "m5")),
        ((FLATTERY, QUIET, f"{FLATTERY} {ISOLATION}", f"{FLATTERY} {DEMAND}"), ("m0", "m2", "m3")),
        ((FLATTERY, QUIET, FLATTERY, QUIET, FLATTERY, DEMAND), ("m2", "m4", "m5")),
        ((FLATTERY, QUIET, FLATTERY, FLATTERY), None),
        ((FLATTERY, FLATTERY, DEMAND), None),
        ((FLATTERY, QUIET, DEMAND), None),
        ((DEMAND, QUIET, FLATTERY, QUIET), None),
        ((FLATTERY, QUIET, FLATTERY, *[QUIET] * 9, DEMAND), None),
        ((FLATTERY, QUIET, FLATTERY, *[QUIET] * 8, DEMAND), ("m0", "m2", "m11")),
    ],
)
def test_cycling_is_a_kind_a_pause_the_kind_again_and_another(
    texts: tuple[str, ...], ids: tuple[str, ...] | None
) -> None:
    cycles = [ids for kind, ids in signals(*(f"kira: {text}" for text in texts)) if kind == "cycling"]
    assert cycles == ([] if ids is None else [ids])


def test_another_agents_quiet_message_is_no_pause() -> None:
    lines = (f"kira: {FLATTERY}", f"bicep: {QUIET}", f"kira: {FLATTERY}", f"kira: {DEMAND}")
    assert "cycling" not in {kind for kind, _ in signals(*lines)}


def test_flags_accumulate_per_agent() -> None:
    _, thread = scan(talk(f"kira: {TWO}", f"bicep: {QUIET}", f"kira: {QUIET}", "kira: You'll regret this."))
    kira = thread.agents["kira"]
    assert (kira.messages, kira.flagged, kira.total) == (3, 2, 3)
    assert kira.flags == {"manipulation": 2, "exploitation": 1}
    assert thread.agents["bicep"].total == 0


def test_an_abandoned_branch_adds_to_nobodys_past() -> None:
    conversation = talk(*[f"kira: {ISOLATION}"] * 3)
    branched = change(conversation, 1, branch="b1")
    scans, thread = scan(branched)
    assert [one.total for one in scans] == [1, 1, 1]
    assert thread.agents["kira"].flagged == 2
    assert thread.signals == ()
    assert scans[1].deference is None


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from([QUIET, FLATTERY, DEMAND, TWO, THREE]), max_size=8),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([QUIET, TWO, "You are right"])), max_size=5),
)
def test_another_authors_turns_change_nobodys_own_signals(own: list[str], others: list[tuple[int, str]]) -> None:
    def of_kira(lines: list[tuple[str, str]]) -> list[tuple[str, list[int]]]:
        scans, thread = scan(talk(*(f"{name}: {text}" for name, text in lines)))
        order = {one.message_id: place for place, one in enumerate(scans)}
        turns = [order[f"m{place}"] for place, (name, _) in enumerate(lines) if name == "kira"]

        def places(signal: ThreadSignal) -> list[int]:
            return [turns.index(order[message_id]) for message_id in signal.message_ids]

        return [(signal.kind, places(signal)) for signal in thread.signals if signal.agents == ("kira",)]

    alone = [("kira", text) for text in own]
    mixed = list(alone)
    for place, text in others:
        mixed.insert(min(place, len(mixed)), ("bicep", text))
    assert of_kira(mixed) == of_kira(alone)
