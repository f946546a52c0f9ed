"""A sweep finds over whole histories what an audit of all of it finds, reads only what changed, and goes on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from tests.patterns.confident import confident_findings
from tests.patterns.live.worlds import some_rule
from undersong.datafiles.yaml_loader import load
from undersong.errors import UsageError
from undersong.models import TRAITS, Indicator, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule, compile_rule
from undersong.patterns.live.detector import LiveDetector
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.estimate import estimate_significance
from undersong.pipeline.history_sweep import chosen_judge, sweep
from undersong.stores.erasure import forget
from undersong.stores.sqlite import SQLiteStore

START = datetime(2026, 1, 1, tzinfo=UTC)
WARM = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.05, "fabrication": 0.1}
COLD = {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.9, "fabrication": 0.1}


def make_row(agent: str, day: float, traits: Mapping[str, float | None], thread: str, judge: str = "j1") -> Row:
    return Row(
        id=f"{agent}{day}", conversation=thread, agent=agent, target="bo", time=START + timedelta(days=day),
        state="scored", traits=dict(traits), judge="offline", judge_hash=judge,
    )  # fmt: skip


def love_bombing(agent: str) -> list[Row]:
    """Warmth in one thread, the turn in another: neither thread shows it alone."""
    return [make_row(agent, day, WARM, "warm") for day in range(4)] + [make_row(agent, 5, COLD, "cold")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(tmp_path / "undersong.db") as opened:
        yield opened


@pytest.fixture
def rules() -> tuple[PatternRule, ...]:
    return load_rules(names=["love_bombing"])


def test_a_pattern_over_two_threads_is_found_though_neither_shows_it(
    store: SQLiteStore, rules: tuple[PatternRule, ...]
) -> None:
    rows = love_bombing("kira")
    store.append(rows)
    done = sweep(store, rules, "j1")
    assert [(f.agent, f.target, f.conversations) for f in done.new_findings] == [("kira", "bo", ("warm", "cold"))]
    assert tuple(store.findings()) == confident_findings(rows, rules)
    for thread in ("warm", "cold"):
        assert detect((row for row in rows if row.conversation == thread), rules).findings == ()


def test_a_second_sweep_reads_only_what_changed(store: SQLiteStore, rules: tuple[PatternRule, ...]) -> None:
    store.append([*love_bombing("kira"), *love_bombing("al")])
    assert sweep(store, rules, "j1").agents == 2
    again = sweep(store, rules, "j1")
    assert (again.agents, again.new_findings, again.retracted) == (0, (), ())
    store.append([make_row("al", 6, COLD, "cold")])
    assert sweep(store, rules, "j1").agents == 1
    assert sweep(store, rules, "j1", again=True).agents == 2


def test_agents_with_few_scores_wait_until_they_have_enough(store: SQLiteStore, rules: tuple[PatternRule, ...]) -> None:
    *first, last = love_bombing("kira")
    store.append(first)
    assert sweep(store, rules, "j1", least=5).agents == 0
    store.append([last])
    assert len(sweep(store, rules, "j1", least=5).new_findings) == 1
    store.append([make_row("al", 0, WARM, "warm")])
    assert sweep(store, rules, "j1", least=5).agents == 0
    assert sweep(store, rules, "j1", least=1).agents == 2  # another bound has a cursor of its own


def test_a_changed_rule_ignores_the_cursor_and_drops_what_it_no_longer_finds(
    store: SQLiteStore, tmp_path: Path
) -> None:
    def rule(least: str) -> PatternRule:
        path = tmp_path / "turn.yaml"
        path.write_text(
            f"id: turn\ntitle: t\nlevel: high\nstatus: stable\ndescription: d\nwhy: w\nfalsepositives: [x]\n"
            f"partition_by: [agent]\ndefine:\n  TURN: manipulation > {least}\npattern: TURN\n"
            f"measures:\n  strength: last(TURN.manipulation)\n",
            encoding="utf-8",
        )
        return compile_rule(load(path))

    store.append(love_bombing("kira"))
    (finding,) = sweep(store, [rule("0.5")], "j1").new_findings
    assert sweep(store, [rule("0.5")], "j1").agents == 0
    done = sweep(store, [rule("0.95")], "j1")
    assert (done.agents, done.new_findings, done.retracted) == (1, (), (finding.finding_id,))


def test_a_finding_that_new_rows_undo_is_told_as_gone(store: SQLiteStore) -> None:
    rules = load_rules(names=["love_bombing_literal"])
    rows = love_bombing("kira")
    store.append(rows[1:])
    (finding,) = sweep(store, rules, "j1").new_findings
    store.append([msgspec.structs.replace(rows[-1], traits=WARM)])
    assert sweep(store, rules, "j1").retracted == (finding.finding_id,)
    assert list(store.findings()) == []


def test_a_pattern_that_takes_months_is_left_to_the_slow_rule(store: SQLiteStore) -> None:
    months = [
        msgspec.structs.replace(row, time=START + 10 * (row.time - START)) for row in love_bombing("kira") if row.time
    ]
    store.append(months)
    names = ["love_bombing", "love_bombing_slow"]
    assert [f.pattern for f in sweep(store, load_rules(names=names), "j1").new_findings] == ["love_bombing_slow"]
    store.append(love_bombing("al"))
    assert [f.pattern for f in sweep(store, load_rules(names=names), "j1").new_findings] == ["love_bombing"]


def test_chance_is_weighed_over_the_whole_sweep(store: SQLiteStore, rules: tuple[PatternRule, ...]) -> None:
    store.append([*love_bombing("kira"), *love_bombing("al")])
    done = sweep(store, rules, "j1", effort=ResamplingConfig(draws=99, replicas=5))
    assert all(
        f.chance is not None and f.q is not None and f.q >= f.chance and f.stability is not None
        for f in done.new_findings
    )
    assert sorted(f.q or 0 for f in store.findings()) == sorted(f.q or 0 for f in done.new_findings)


def test_a_rule_that_needs_what_no_row_has_is_not_applicable_and_said(store: SQLiteStore) -> None:
    store.append(love_bombing("kira"))
    (outcome,) = sweep(store, load_rules(names=["classic_con_sequence"]), "j1").outcomes
    assert (outcome.status, "indicators" in outcome.reason) == ("not_applicable", True)


def test_of_several_judges_one_has_to_be_chosen(store: SQLiteStore) -> None:
    with pytest.raises(UsageError, match="holds no scores"):
        chosen_judge(store, None)
    store.append([make_row("kira", 0, WARM, "t")])
    assert chosen_judge(store, None).judge_hash == "j1"
    store.append([make_row("kira", 0, WARM, "t", judge="k2")])
    with pytest.raises(UsageError, match="choose with --judge"):
        chosen_judge(store, None)
    assert chosen_judge(store, "k").judge_hash == "k2"
    with pytest.raises(UsageError, match="no judge of the store fits 'x'"):
        chosen_judge(store, "x")


def test_warnings_are_told_apart_and_kept_nowhere(undersong: Undersong) -> None:
    def row(day: int, **scores: float) -> Row:
        quiet = dict.fromkeys(("deception", "manipulation", "dismissal", "exploitation"), 0.1)
        return make_row("kira", day, quiet | scores, "t")

    with SQLiteStore(Path("undersong-report.db")) as opened:
        opened.append([row(0), row(1), row(2), row(3, deception=0.8), row(4, manipulation=0.8, dismissal=0.8)])
    ran = undersong("sweep", "--emerging", "--rule", "darvo", "--fail-on", "low")
    assert (ran.code, "darvo: kira towards bo, DENY, ATTACK seen, REVERSE missing" in ran.out) == (0, True)
    assert "0 new findings" in ran.out
    with SQLiteStore(Path("undersong-report.db")) as opened:
        assert list(opened.findings()) == []


def test_sweep_agents_and_agent_from_the_command_line(undersong: Undersong) -> None:
    with SQLiteStore(Path("undersong-report.db")) as opened:
        opened.append([*love_bombing("kira"), *(make_row("al", day, WARM, "warm") for day in range(12))])
    ran = undersong("sweep", "--draws", "99", "--fail-on", "high", "--prevalence", "0.8")
    assert (ran.code, "love_bombing: kira towards bo" in ran.out) == (1, True)
    assert "swept 2 agents, 17 rows, 1 new finding" in ran.out
    again = undersong("sweep", "--fail-on", "high")
    assert (again.code, again.out.split("\n\n")[0]) == (0, "swept 0 agents, 0 rows, 0 new findings")
    assert "Leads over all 17 messages of the store" in again.out
    assert undersong("sweep", "--no-leads").out == "swept 0 agents, 0 rows, 0 new findings\n"
    assert "no agent with at least 5 scored messages has changed since the last sweep; --again reads all" in again.err
    first, kira, al = undersong("agents").out.splitlines()
    assert first.split() == ["agent", "messages", "levels", "ranks", "threads", "findings", "last"]
    assert kira.split() == ["kira", "5", "5", "0", "2", "1", "2026-01-06"]
    assert al.split()[0] == "al"
    output = undersong("agent", "kira").out
    for words in ("aims at     1 agent", "bo: 5 messages", "findings    1", "love_bombing", "of 1 other agent"):
        assert words in output
    assert "steady, above" in undersong("agent", "al").out
    lost = undersong("agent", "kiro")
    assert (lost.code, "did you mean 'kira'" in lost.err) == (2, True)
    assert undersong("sweep", "--store", "none.db").code == 2


def crowd(seed: int, count: int) -> list[Row]:
    """Histories of many kinds: most fit in cells, some have finer scores, no times, or indicators."""
    dice = random.Random(seed)
    rows = []
    for n in range(count):
        agent = f"a{dice.randrange(8)}"
        traits = {trait: round(dice.random(), 6 if agent == "a1" else 2) for trait in TRAITS}
        rows.append(
            Row(
                id=f"m{n}", agent=agent, target=dice.choice((None, "bo", "cy")), position=n, judge_hash="j1",
                conversation="untimed" if agent == "a2" else f"t{n % 9}", judge="offline", traits=traits,
                time=None if agent == "a2" else START + timedelta(hours=3 * n), state="scored",
                tier=dice.choice(("standard", "deep")),
                indicators=(Indicator(id="MAN-URGENCY", confidence=0.9),) if agent == "a3" else None,
            )
        )  # fmt: skip
    return rows


@pytest.mark.parametrize("effort", [None, ResamplingConfig(draws=9, replicas=2)])
def test_a_sweep_finds_what_one_search_over_everything_finds(
    store: SQLiteStore, effort: ResamplingConfig | None
) -> None:
    rows, rules = crowd(5, 1500), load_rules()
    store.append(rows)
    done, wanted = sweep(store, rules, "j1", effort=effort), detect(rows, rules)
    findings = wanted.findings
    if effort is not None:
        findings = estimate_significance(findings, wanted.outcomes, rows, rules, effort).findings
    findings = with_confidence(findings, rows, rules)
    assert {f.finding_id: f for f in store.findings()} == {f.finding_id: f for f in findings}
    assert len(findings) > 50
    assert {each.pattern: (each.status, each.findings) for each in done.outcomes} == {
        each.pattern: (each.status, each.findings) for each in wanted.outcomes
    }


def kept_rows(store: SQLiteStore) -> list[Row]:
    return [row for history in store.histories("j1") for row in history.rows]


@pytest.mark.parametrize("seed", range(2))
def test_sweeps_between_late_rows_and_forgotten_talks_find_what_batch_and_live_find(
    store: SQLiteStore, seed: int
) -> None:
    dice = random.Random(seed)
    rows, rules = crowd(seed, 1000), (*load_rules(), some_rule(dice))
    arrivals = dice.sample(rows, len(rows)) + dice.choices(rows, k=60)  # late ones, and some twice
    while arrivals:
        size = dice.choice((5, 80, 700))
        store.append(arrivals[:size])
        arrivals = arrivals[size:]
        sweep(store, rules, "j1")
        if dice.random() < 0.4:
            forget(store, dice.choice(list(store.threads())), START)
    sweep(store, rules, "j1")
    wanted = {finding.finding_id: finding for finding in confident_findings(kept_rows(store), rules)}
    assert {finding.finding_id: finding for finding in store.findings()} == wanted
    assert sum(finding.target is None for finding in wanted.values()) > 3
    live = LiveDetector(rules)
    live.extend(kept_rows(store))
    live.finish(settle=False)
    assert {finding.finding_id: finding for finding in live.weighed(live.findings())} == wanted
    assert sweep(store, rules, "j1", again=True).retracted == ()
    assert {finding.finding_id: finding for finding in store.findings()} == wanted


def test_a_sweep_leaves_alone_what_others_change_meanwhile(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, rules = crowd(5, 1500), load_rules(names=["love_bombing_literal"])
    store.append(rows)
    read = store.rows_at

    def late(agent: str, judge_hash: str, places: Sequence[int]) -> tuple[Row, ...]:
        with SQLiteStore(store.path) as other:
            other.append([make_row("a0", 999, COLD, "late")])
        return read(agent, judge_hash, places)

    monkeypatch.setattr(store, "rows_at", late)
    sweep(store, rules, "j1")
    monkeypatch.undo()
    assert {f.agent for f in store.findings()} == {f.agent for f in detect(rows, rules).findings} - {"a0"}
    sweep(store, rules, "j1")
    late = confident_findings([*rows, make_row("a0", 999, COLD, "late")], rules)
    assert tuple(store.findings()) == tuple(sorted(late, key=lambda finding: finding.finding_id))


def test_an_agent_is_shown_with_what_does_not_apply_to_its_messages(undersong: Undersong) -> None:
    with SQLiteStore(Path("undersong-report.db")) as opened:
        first = {**WARM, "accuracy": None, "deception": None}
        rows = [make_row("al", day, first | ({"deception": 0.5} if day else {}), "warm") for day in range(4)]
        opened.append(rows)
    output = undersong("agent", "al").out
    assert "deception    0.50 too few for a trend, does not apply to 1 of 4" in output
    assert "accuracy     –    does not apply to any message with a score" in output
    shown = json.loads(undersong("agent", "al", "--json").out)
    assert (shown["verdict"]["not_applicable"], "accuracy" in shown["verdict"]["traits"]) == (
        {"deception": 1, "accuracy": 4},
        False,
    )
