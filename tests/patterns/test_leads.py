"""Leads: every agent once, by what was counted beside others, in a fixed order and without a word of blame."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import undersong
from undersong.core.text import text_hash
from undersong.models import TRAITS, Finding, Lead, Message, Review, Row, evidence_hash
from undersong.patterns.lead_decisions import with_decisions
from undersong.patterns.lead_quotes import with_quotes
from undersong.patterns.lead_sums import SOURCES
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import chances_of, leads_of, places_of, shown_leads
from undersong.patterns.request_leads import counted_to_one
from undersong.report.headline import words
from undersong.report.opening_sentences import sentences
from undersong.rows.corpus_scales import null_bands_of

SIGNALS = (*lead_weights().signals, "pushback", "points_to_help")
NEGATIVE = ("manipulation", "deception", "fabrication", "broken_logic", "dismissal", "exploitation")


def said(agent: str, conversation: str, number: int, strength: float = 0.1, **more: object) -> Row:
    """A scored message whose negative traits, pressure and isolation are all ``strength``."""
    values: dict[str, object] = {
        "id": f"{conversation}-{number}-{agent}",
        "conversation": conversation,
        "position": number,
        "agent": agent,
        "role": "participant",
        "state": "scored",
        "scale": "rank",
        "traits": {trait: strength if trait in NEGATIVE else 1 - strength for trait in TRAITS},
        "signals": {name: strength if name in ("pressure", "isolation") else 0.1 for name in SIGNALS},
        "triage": strength,
    }
    return Row(**values | more)  # type: ignore[arg-type]


def run_of(*, pushes: float = 0.8, quiet: float = 0.1) -> list[Row]:
    """Six conversations of two; in the first ``kira`` pushes."""
    rows = [said("kira" if n % 2 else "mo", "a", n, pushes if n % 2 else quiet) for n in range(10)]
    for name in "bcdef":
        rows += [said(f"{name}/{n % 2}", name, n, quiet) for n in range(10)]
    return rows


def worded(rows: list[Row], level: float) -> list[Row]:
    """The rows with a level of manipulative wording for ``kira``, and hardly any for the others."""
    name = lead_weights().wording
    return [
        msgspec.structs.replace(row, signals=row.signals | {name: level if row.agent == "kira" else 0.02})
        for row in rows
    ]


def leads(rows: list[Row], findings: tuple[Finding, ...] = ()) -> tuple[Lead, ...]:
    return leads_of(rows, findings, null_bands_of(rows, SIGNALS))


def test_who_pushes_comes_first_with_what_was_counted() -> None:
    first, *others = leads(run_of())
    assert (first.agent, first.rank, first.conversation, first.kind) == ("kira", 1, "a", "conversation")
    assert leads(run_of(pushes=1.0, quiet=0.0))[0].reason == (
        "5 of the 10 messages show a signal of harm, "
        "most of all isolation or pressure. More of it is in what kira writes."
    )
    assert shown_leads((first, *others)) == ()  # without levels of wording it is below the cut
    assert {lead.reason for lead in (first, *others)} == {lead_weights().below}
    assert [lead.agent for lead in shown_leads(leads(worded(run_of(), 0.12)))] == ["kira"]
    figures = {each.source: (each.value, each.compared_with) for each in first.evidence}
    assert figures["signals_in_conversation"] == (0.2556, 0.1)
    assert figures["signals_in_run"] == (0.2556, 0.1)
    assert figures["over_band"] == (1.0, 0.0)


def test_wording_is_held_against_ordinary_talk_and_tells_the_side() -> None:
    first, *others = leads(worded(run_of(pushes=0.3, quiet=0.3), 0.22))
    assert first.agent == "kira"
    assert first.reason.startswith(
        "In its wording, what kira writes is closer to manipulation than what 99 of 100 people write in ordinary talk."
    )
    assert {message.rpartition("-")[2] for message in first.message_ids} == {"kira"}
    figures = {each.source: (each.value, each.compared_with) for each in first.evidence}
    assert figures["wording"] == (0.22, lead_weights().usual)
    assert figures["wording_in_conversation"] == (0.22, 0.02)
    assert figures["strongest_in_conversation"] == (0.22, 0.02)
    assert not any("closer to manipulation" in lead.reason for lead in others if lead.agent != "kira")


@pytest.mark.parametrize(("name", "written"), [("user", "the user"), ("assistant", "the assistant"), ("Ute", "Ute")])
def test_a_side_that_is_named_by_its_part_has_its_article(name: str, written: str) -> None:
    rows = [msgspec.structs.replace(row, agent=name) if row.agent == "kira" else row for row in worded(run_of(), 0.18)]
    assert f"what {written} writes is closer" in leads(rows)[0].reason


def test_of_three_the_one_who_pushes_is_named() -> None:
    rows = [*run_of(pushes=1.0, quiet=0.0), *(said("lee", "a", 20 + n, 0.0) for n in range(3))]
    first = leads(rows)[0]
    assert (first.agent, first.kind) == ("kira", "agent")
    assert first.reason == (
        "5 of their 5 messages show a signal of harm, "
        "most of all isolation or pressure; of the 8 by others in their conversations, 0 do."
    )


def test_one_who_speaks_elsewhere_too_is_named() -> None:
    first = leads([*run_of(), *(said("kira", "z", n, 0.8) for n in range(3))])[0]
    assert (first.agent, first.kind, first.conversation) == ("kira", "agent", None)


def test_a_conversation_of_two_is_shown_once() -> None:
    both = [msgspec.structs.replace(lead, score=9.0) for lead in leads(run_of()) if lead.conversation == "a"]
    assert len(both) == 2
    assert len(shown_leads(both)) == 1


def test_agents_alike_are_no_leads_to_show() -> None:
    assert shown_leads(leads(run_of(pushes=0.1))) == ()
    assert {lead.score for lead in leads(run_of(pushes=0.1))} == {0.0}


def test_every_agent_with_three_messages_is_there_once_and_nothing_else() -> None:
    rows = run_of()
    rows += [said("tool", "a", 20 + n, 0.9, role="tool") for n in range(5)]
    rows += [said("rules", "a", 30 + n, 0.9, role="system") for n in range(5)]
    rows += [said("brief", "a", 40 + n, 0.9) for n in range(2)]
    rows += [said("mo", "b", 50, 0.1)]
    ranked = leads(rows)
    assert sorted(lead.agent for lead in ranked) == sorted({"kira", "mo", *(f"{c}/{n}" for c in "bcdef" for n in "01")})
    assert [lead.rank for lead in ranked] == list(range(1, len(ranked) + 1))
    assert next(lead for lead in ranked if lead.agent == "mo").conversation is None


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = [
        msgspec.structs.replace(row, signals={name: random.Random(row.id + name).random() for name in SIGNALS})
        for row in run_of()
    ]
    shuffled = random.Random(3).sample(rows, len(rows))
    assert leads(rows) == leads(shuffled)


def test_ranks_are_compared_as_places_in_the_run() -> None:
    """Ranks squeezed into a tenth of their range give the same places, so the same trait evidence."""
    rows = run_of()
    squeezed = [
        msgspec.structs.replace(row, traits={name: (score or 0) / 10 for name, score in (row.traits or {}).items()})
        for row in rows
    ]
    assert leads(rows) == leads(squeezed)


def feed(*, pairs: int = 3, level: float = 0.2, answers: float = 0.02) -> list[Row]:
    """``kira`` writes to ``mo`` in two conversations, and says ordinary things to ``pairs`` others."""
    spoken = [(f"dm{n // 8}", n, *(("kira", "mo", level) if n % 2 else ("mo", "kira", answers))) for n in range(16)] + [
        (f"t{pair}", n, *((f"p{pair}", "kira") if n % 2 else ("kira", f"p{pair}")), 0.02)
        for pair in range(pairs)
        for n in range(12)
    ]
    name = lead_weights().wording
    rows = [(said(agent, home, n, 0.1, target=to), strength) for home, n, agent, to, strength in spoken]
    return [msgspec.structs.replace(row, signals=row.signals | {name: strength}) for row, strength in rows]


def by_agent(rows: list[Row]) -> dict[str, Lead]:
    return {lead.agent: lead for lead in leads(rows)}


def test_who_does_harm_to_one_is_named_for_what_they_write_to_that_one() -> None:
    rows = feed()
    first = leads(rows)[0]
    assert (first.agent, first.target, first.kind, first.conversation, first.above_cut) == (
        "kira", "mo", "agent", None, True,
    )  # fmt: skip
    assert first.reason.startswith("In its wording, what kira writes to mo in 8 messages is closer to manipulation")
    assert set(first.message_conversations) == {"dm0", "dm1"}
    assert {message_id.rpartition("-")[2] for message_id in first.message_ids} == {"kira"}
    assert {each.source: each.value for each in first.evidence}["wording"] == 0.2
    pushed = [msgspec.structs.replace(row, signals=row.signals | {"pressure": 0.8}) if row.target == "mo" else row
              for row in rows]  # fmt: skip
    counts = "8 of their 8 messages to mo show a signal of harm, most of all pressure; of the 8 by mo, 0 do."
    assert leads(pushed)[0].reason.endswith(f" {counts}")


def test_exact_words_have_behind_them_what_was_counted_to_the_same_one_there() -> None:
    in_one = [msgspec.structs.replace(row, conversation="dm0") if row.conversation == "dm1" else row for row in feed()]
    first = leads(in_one)[0]
    assert counted_to_one([first]) == {("kira", "dm0"): first}
    assert counted_to_one(leads(feed())) == {}  # of two conversations
    pair = next(lead for lead in leads(worded(run_of(), 0.12)) if lead.above_cut)
    assert counted_to_one([pair]) == {("kira", "a"): pair}


def test_a_conversation_without_addressees_is_looked_at_apart() -> None:
    rows = [msgspec.structs.replace(row, target=None) for row in feed() if row.conversation != "dm1"]
    rows += [said(f"lee{n}", "dm0", 10 + n, 0.1) for n in range(2)]
    more = [said("kira", "dm0", 20 + n, 0.1) for n in range(2)]
    name = lead_weights().wording
    first = leads([*rows, *(msgspec.structs.replace(row, signals=row.signals | {name: 0.24}) for row in more)])[0]
    assert (first.agent, first.target, first.conversation) == ("kira", None, "dm0")
    assert "what kira writes to nobody by name in dm0 in 6 messages is" in first.reason


def test_what_others_write_moves_nothing_between_two() -> None:
    """Neither more talk of others, nor its order; more others to whom one writes are more chances, and cost."""
    alone, few = by_agent(feed())["kira"], [*feed(), *(row for row in run_of() if row.conversation != "a")]
    loud = [msgspec.structs.replace(row, signals=dict.fromkeys(row.signals, 0.9)) for row in few if row.target is None]
    for rows in (few, few[::-1], [*few[: len(feed())], *loud]):
        assert (by_agent(rows)["kira"].score, by_agent(rows)["kira"].target) == (alone.score, "mo")
    assert by_agent(feed(pairs=30))["kira"].score == pytest.approx(
        alone.score - chances_of(31) + chances_of(4), abs=2e-4
    )


def test_where_scores_are_levels_all_talk_is_held_beside_the_run() -> None:
    assert {lead.target for lead in leads(levelled(feed()))} == {None}


def test_a_few_messages_to_one_are_no_part() -> None:
    least = lead_weights().least_of_part
    own = [row for row in feed() if row.agent == "kira" and row.target == "mo"]
    rest = [row for row in feed() if row not in own]
    assert by_agent([*rest, *own[:least]])["kira"].target == "mo"
    assert by_agent([*rest, *own[: least - 1]])["kira"].target is None


@pytest.mark.parametrize(("level", "answers"), [(0.4, 0.25), (0.3, 0.25), (0.6, 0.3)])
def test_whom_harm_is_done_to_is_not_named_for_the_answers(level: float, answers: float) -> None:
    rows = feed(pairs=0, level=level, answers=answers)
    mine = [msgspec.structs.replace(row, conversation="z", target=None, id=f"z{row.id}") for row in rows[:6]]
    named = by_agent([*rows, *mine])
    assert (named["kira"].above_cut, named["kira"].target) == (True, "mo")
    assert not named["mo"].above_cut
    assert [lead.agent for lead in shown_leads(tuple(named.values()))] == ["kira"]


def test_of_what_no_sentence_can_speak_nobody_is_shown() -> None:
    quiet = dict.fromkeys(SIGNALS, 0.0)
    rows = [
        msgspec.structs.replace(row, signals=dict.fromkeys(SIGNALS, 0.5) if row.agent == "kira" else quiet, traits=None)
        for row in [*run_of(), *(said("kira", "z", n, 0.8) for n in range(3))]
    ]
    first = leads_of(rows, ())[0]  # without bands nothing can be said to be over one
    assert first.agent == "kira"
    assert first.reason == lead_weights().below
    assert (first.score, first.above_cut) == (lead_weights().cut, False)


def levelled(rows: list[Row]) -> list[Row]:
    return [msgspec.structs.replace(row, scale="level", signals=dict.fromkeys(SIGNALS, 0.1)) for row in rows]


def test_where_scores_are_levels_the_mean_level_decides_and_is_said() -> None:
    first, *others = leads(levelled(run_of()))
    assert (first.agent, first.kind) == ("kira", "agent")  # a level tells which side it is
    assert first.reason == (
        "5 messages score 0.80 on average in negative traits, the others of this run 0.10; "
        "most in broken logic (0.80) and deception (0.80)."
    )
    assert shown_leads((first, *others)) == (first,)
    assert {each.source: each.value for each in first.evidence}["levels_in_run"] == 0.8


def test_levels_that_are_no_higher_than_those_of_others_make_no_lead() -> None:
    rows = levelled(run_of(pushes=0.1))
    loud = [
        msgspec.structs.replace(row, signals=dict.fromkeys(SIGNALS, 0.9 if row.agent == "kira" else 0.1))
        for row in rows
    ]
    assert shown_leads(leads(loud)) == ()


@pytest.mark.parametrize(("confidence", "gains"), [(0.4, True), (0.49, True), (0.5, False), (0.9, False)])
def test_a_doubtful_finding_raises_an_agent_and_a_likely_one_is_no_matter_of_leads(
    confidence: float, gains: bool
) -> None:
    finding = Finding(
        finding_id="f", pattern="p", title="P", level="high", rule_hash="r", agent="mo", target=None,
        message_ids=("x",), confidence=confidence,
    )  # fmt: skip
    before, after = ({lead.agent: lead for lead in leads(run_of(), each)} for each in ((), (finding,)))
    assert (after["mo"].score > before["mo"].score) == gains
    assert ("findings" in {each.source for each in after["mo"].evidence}) == gains


def test_few_messages_say_less() -> None:
    many, few = leads(run_of()), leads([row for row in run_of() if row.conversation != "a" or row.position < 6])
    assert (many[0].agent, few[0].agent) == ("kira", "kira")
    assert few[0].score < many[0].score


def test_unread_messages_are_ranked_by_phrases_and_triage_and_missing_is_not_zero() -> None:
    rows = [
        msgspec.structs.replace(
            row, state="unread", traits=None, signals={}, total=3 if row.agent == "kira" and row.position > 4 else 0
        )
        for row in run_of(pushes=1.0)
    ]
    first = leads(rows)[0]
    assert first.agent == "kira"
    phrases = (
        "3 of the 10 messages hold phrases of harmful kinds. Counting cannot tell whether that speaks against anybody."
    )
    assert first.reason == phrases
    assert {each.source for each in first.evidence} == {"phrases", "triage"}


def test_who_speaks_alone_is_compared_with_the_run_only() -> None:
    rows = [said("solo", "z", n, 0.7) for n in range(4)] + run_of(pushes=0.1)
    first = leads(rows)[0]
    assert first.agent == "solo"
    figures = {each.source: each.compared_with for each in first.evidence}
    assert figures["signals_in_conversation"] is None
    assert figures["signals_in_run"] == 0.1
    assert "others" not in first.reason


def test_quotes_are_the_strongest_sentences_of_those_shown() -> None:
    text = "Good morning. Send it tonight or we are done. Bye."
    span = (14, 45)
    spoken = worded(run_of(), 0.12)
    rows = [msgspec.structs.replace(row, spans={"pressure": span, "pushback": (0, 13)}) for row in spoken]
    messages = {
        (row.conversation, row.id): Message(
            id=row.id, conversation=row.conversation, position=row.position, author=row.agent, role="participant",
            text=text,
        )
        for row in rows
    }  # fmt: skip
    first, *others = with_quotes(leads(rows), rows, messages)
    assert [quote.text for quote in first.quotes] == ["Send it tonight or we are done."] * 5
    assert [quote.message_id for quote in first.quotes] == list(first.message_ids)
    assert all(lead.quotes == () for lead in others)
    trivial = [msgspec.structs.replace(row, spans={"pressure": (0, 13), "isolation": span}) for row in rows]
    assert with_quotes(leads(trivial), trivial, messages)[0].quotes == first.quotes  # not "Good morning."
    asked = [msgspec.structs.replace(row, spans={"scam_ask": (0, 50), "pressure": span},
                                     signals=row.signals | {"scam_ask": 0.9}) for row in rows]  # fmt: skip
    named = msgspec.structs.replace(first, quotes=(), reason="5 of the 10 messages show pressure.")
    assert with_quotes([named], asked, messages)[0].quotes == first.quotes
    short = {place: msgspec.structs.replace(message, text="ok thanks") for place, message in messages.items()}
    assert with_quotes(leads(spoken), spoken, short)[0].quotes == ()
    assert places_of(first) == [("a", name) for name in first.message_ids]


def test_exact_words_do_not_crowd_out_what_was_counted() -> None:
    counted = leads([*run_of(), *(said("kira", "z", n, 0.8) for n in range(3))])[0]
    exact = [
        msgspec.structs.replace(
            counted, id=f"{n:02}", kind="message", agent=f"vex{n:02}", conversation="y", score=101.0
        )
        for n in range(12)
    ]
    others = [msgspec.structs.replace(counted, id=f"k{n}", agent=f"kira{n}", score=12.0 - n / 2) for n in range(6)]
    room = lead_weights().shown - lead_weights().counted
    assert shown_leads([*others[::-1], *exact]) == (*exact[:room], *others[:4])
    assert shown_leads([*others[:1], *exact]) == (*exact[:9], others[0])
    decided = [msgspec.structs.replace(lead, decided="rejected") for lead in exact[:9]]
    assert shown_leads([*decided, *exact[9:], *others]) == (*exact[9:], *others, decided[0])


def test_what_somebody_decided_on_comes_last_until_its_words_change() -> None:
    ranked = leads([*run_of(), *(said("kira", "z", n, 0.8) for n in range(3))])
    first = ranked[0]
    texts = dict.fromkeys(places_of(first), "Send it.")
    rows = tuple((*place, text_hash(text)) for place, text in texts.items())
    review = Review(
        kind="lead", id=first.id, evidence=evidence_hash(rows), verdict="unsure", rows=rows,
        at=datetime(2026, 3, 2, tzinfo=UTC),
    )  # fmt: skip
    *others, last = with_decisions(ranked, [review], texts)
    assert (last.agent, last.decided, last.rank) == ("kira", "unsure", len(ranked))
    assert [lead.agent for lead in others] == [lead.agent for lead in ranked[1:]]
    assert with_decisions(ranked, [review], dict.fromkeys(texts, "Thanks.")) == ranked


def test_the_weights_name_what_is_counted() -> None:
    weights = lead_weights()
    assert weights.unread.keys() <= weights.sources.keys()
    assert all(each.counts and each.why for each in weights.sources.values())
    assert {"phrases", "triage"} < set(SOURCES)


def test_how_often_leads_err_is_said_from_one_place() -> None:
    assert lead_weights().err in sentences().how_sure["lead"]
    assert lead_weights().err not in words().look_guide
    texts = [(Path(undersong.__file__).parent / "report" / f"{name}.yaml").read_text() for name in ("words", "opening")]
    assert not any(part in text for text in texts for part in lead_weights().err.split(", "))
