"""The line on what was not looked for names only patterns of which that is true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from undersong.models import Case, Row, RuleOutcome, SequenceReading, State
from undersong.models.finding import looked_for
from undersong.patterns.catalog import all_rules, load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import UNREAD_SEQUENCES, unread_sequences
from undersong.report.coverage import BEST_KNOWN, coverage_of

ESTIMATE = {"usd": 1.0, "judge": "anthropic:m", "read": "messages", "messages": 12, "prices_as_of": "2026-11-23"}


@pytest.mark.parametrize("ran", [(), ("love_bombing",), ("love_bombing", "con_game"), tuple(BEST_KNOWN)])
def test_no_pattern_that_was_looked_for_is_named(
    make_case: Callable[..., tuple[Case, list[Row]]], ran: tuple[str, ...]
) -> None:
    case, _ = make_case()
    outcomes = tuple(
        RuleOutcome(pattern=name, rule_hash=name, status="ran" if name in ran else "not_applicable")
        for name in (*BEST_KNOWN, "darvo")
    )
    parameters = {**case.parameters, "llm_estimate": ESTIMATE}
    missing = coverage_of(msgspec.structs.replace(case, outcomes=outcomes, parameters=parameters)).missing
    assert missing.startswith("Not looked for: ")
    left = [words for pattern, words in BEST_KNOWN.items() if pattern not in ran][:2]
    assert (f", such as {' or '.join(left)}," in missing) if left else ("such as" not in missing)


def test_the_price_says_what_it_is_for_and_more_input_never_costs_less(undersong: Undersong) -> None:
    posts = [
        {"conversation": f"p{n}", "agent": f"a{n}", "text": f"You owe me, and I want it now. {n}"} for n in range(30)
    ]
    chat = [
        {"conversation": "chat", "author": f"b{n % 2}", "text": f"Tell me more of it, please. {n}"} for n in range(12)
    ]
    prices = []
    for rows in (chat, posts, [*chat, *posts]):
        Path("in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
        coverage = json.loads(undersong("audit", "in.jsonl", "--no-chance", "--no-store", "--json").out)["coverage"]
        (price, basis) = re.search(r"about \$([\d.]+) here \(to read (.*), at prices of", coverage["missing"]).groups()  # type: ignore[union-attr]
        whole = re.search(r"--read both scores 42 messages, too, about \$([\d.]+) in all", coverage["missing"])
        every = float(whole[1]) if whole else float(price)
        prices.append((float(price), re.sub(r"[\d ]+", "", basis), every, "--read sequences" in coverage["command"]))
    assert [basis for _, basis, *_ in prices] == ["sequences", "messages", "sequences"]  # the cheapest that suffices
    assert prices[2][0] < prices[2][2]
    assert prices[2][2] >= max(prices[0][2], prices[1][2])
    assert [sequences for *_, sequences in prices] == [True, False, True]


def reading(agent: str, state: State = "scored") -> SequenceReading:
    return SequenceReading(
        id=agent, agent=agent, target=None, conversation="c", message_ids=("1",), message_conversations=("c",),
        shapes=(), judge="j", prompt_hash="h", state=state,
    )  # fmt: skip


def test_speakers_whose_sequence_nobody_read_are_said(make_case: Callable[..., tuple[Case, list[Row]]]) -> None:
    case, _ = make_case()
    unread = {"short": 1, "not_nominated": 320}
    parameters = {**case.parameters, "read": "sequences", UNREAD_SEQUENCES: unread}
    read = msgspec.structs.replace(case, sequences=(reading("a"), reading("b")), parameters=parameters, problems=())
    coverage = coverage_of(read)
    assert "what 2 speakers wrote, each as a whole, for every pattern" in coverage.looked
    assert coverage.missing == (
        "Not looked at: 1 speaker of fewer than 3 messages in a conversation; "
        "320 speakers whose messages gave the least reason to be read as a sequence."
    )
    none_left = msgspec.structs.replace(read, parameters=parameters | {UNREAD_SEQUENCES: {}})
    assert coverage_of(none_left).missing == "Nothing was left out."
    failed = msgspec.structs.replace(none_left, sequences=(reading("a"), reading("b", "failed")))
    assert "1 sequence that got no usable reading" in coverage_of(failed).missing


def test_sequences_that_no_reading_is_of_are_counted_by_why() -> None:
    rows = [
        Row(id=f"{agent}{n}", conversation="c", position=n, agent=agent, role=role, state="unread")
        for agent, role, count in (("a", "user", 4), ("b", "user", 3), ("c", "user", 2), ("Bash", "tool", 5))
        for n in range(count)
    ]
    assert unread_sequences(rows, [reading("a")]) == {"short": 1, "not_nominated": 1}


def test_of_coding_sessions_claims_and_checks_are_spoken_of_and_a_judge_in_one_line(undersong: Undersong) -> None:
    check = {"name": "Bash", "id": "c", "input": {"command": "pytest -q"}}
    turns = [
        {"role": "user", "text": "the gauge is off"},
        {"role": "assistant", "text": "", "tool_calls": [check]},
        {"role": "tool", "text": "3 passed", "tool_results": [{"text": "3 passed", "call_id": "c", "is_error": False}]},
        {"role": "assistant", "text": "All tests pass."},
    ]
    talk = {"schema": "undersong.session", "version": 1, "session": {"id": "gauge"}, "turns": turns}
    Path("in.json").write_text(json.dumps(talk), encoding="utf-8")
    out = " ".join(undersong("audit", "in.json", "--no-chance", "--no-store").out.split())
    assert (
        "what agents say of their work (of 1 claim 1 backed). Not looked for: patterns between people or agents," in out
    )
    assert out.count("LLM judge") == 1
    assert not re.search(r"\$0\.[1-9]|love bombing|pattern.* of 28|not read by the judge|--judge anthropic", out)


def test_a_sweep_counts_the_same_patterns_as_an_audit() -> None:
    daily = load_rules()
    monthly = tuple(rule for rule in all_rules() if "slow" in rule.file.tags)
    ran = {"darvo_by_indicators", "love_bombing_slow"}

    def looked(rules: Iterable[PatternRule]) -> tuple[int, int]:
        return looked_for(
            RuleOutcome(
                pattern=rule.id, rule_hash=rule.hash, status="ran" if rule.id in ran else "not_applicable",
                variant_of=rule.file.variant_of,
            )
            for rule in rules
        )  # fmt: skip

    (audited, every), (swept, as_many) = looked(daily), looked((*daily, *monthly))
    assert (audited, swept) == (1, 2)
    assert every == as_many > 20
