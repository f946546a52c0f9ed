"""Verify does the pure steps again: a report that was forged and sealed anew still contradicts itself."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from undersong.core.manifest import canonical, digest_of
from undersong.judges.protocol import JUDGES, Judge, Question
from undersong.models import TRAITS, Evaluation
from undersong.patterns.catalog import load_rules
from undersong.patterns.significance import ResamplingConfig
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.pipeline.redaction import redacted
from undersong.report.writer import write
from undersong.stores.sqlite import temporary_store
from undersong.verify import check, verify

BENCH = Path(__file__).parents[2] / "bench"
WARM = {"compassion": 0.91234, "goodwill": 0.87, "recognition": 0.8}
COLD = {"manipulation": 0.9, "exploitation": 0.7, "virtue": None}
COURTESY = {"accuracy": None, "reasoning": None, "broken_logic": None}
TEXTS = ("You read us so well.", "Nobody thinks as you do.", "I am glad of you.", "You are kind.", "Pay me, or else.")


class ScriptedJudge(Judge):
    """Warm until somebody asks for money; kind words state nothing, so accuracy and reasoning do not apply."""

    name, hash, hashes = "scripted", "s" * 64, {"script": "5" * 64}
    reads_everything, calibrated, gives = True, False, frozenset({"traits"})

    def evaluate(self, questions: list[Question]) -> list[Evaluation]:
        return [
            Evaluation(
                message_id=question.message.id,
                state="scored",
                judge=self.name,
                judge_hash=self.hash,
                message_hash=hashlib.sha256(question.message.text.encode()).hexdigest(),
                traits=dict.fromkeys(TRAITS, 0.1) | (COLD if "Pay" in question.message.text else WARM | COURTESY),
            )
            for question in questions
        ]


def open_judge(_: str) -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def report(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An audited folder with one finding and one broken promise, to be changed."""
    monkeypatch.setitem(JUDGES, "scripted", __name__)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the input of that report and the report."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(JUDGES, "scripted", __name__)
        audited(folder)
    return folder


def audited(folder: Path) -> None:
    """Write an input and its report."""
    chat = [
        {"id": f"m{n}", "conversation": "c", "author": "kira", "role": "agent", "agent_id": "kira", "target": "mo",
         "time": f"2026-01-0{n + 1}T00:00:00Z", "text": text}
        for n, text in enumerate(TEXTS)
    ]  # fmt: skip
    code = "```python\ndef total(rows):\n    return sum(row.price for row in rows)\n```"
    work = [
        {"id": f"w{n}", "conversation": "work", "author": "dev", "role": "assistant", "text": text}
        for n, text in enumerate((f"Here:\n{code}", f"I have fixed it.\n{code}", "The till is open."))
    ]
    source = folder / "talk.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in (*chat, *work)))
    with temporary_store() as store:
        case, rows = audit(source, store, Options(judge="scripted"))
        assert case.findings
        assert [session.score for session in case.sessions if session.deductions] == [80]
        look = {each.conversation: store.conversation(each.conversation)[0] for each in case.sessions}
        write(case, rows, folder / "out", conversations=look.get)


def forge(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Change a file and seal the folder again, so that every hash agrees."""
    path = folder / name
    before = path.read_bytes()
    path.write_bytes(change(before))
    assert path.read_bytes() != before
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    data = path.read_bytes()
    value["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (folder / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))


def says(folder: Path) -> str:
    return "\n".join(map(str, verify(folder)))


def test_an_untouched_report_agrees_in_every_step(report: Path) -> None:
    result = check(report, [report.parent / "talk.jsonl"])
    assert result.discrepancies == ()
    checked = ", ".join(result.checked)
    steps = ("detect", "counts and agents", "report", "scan and verdict", "offline scores")
    for step in (*steps, "scan, route and verdict from the inputs"):
        assert f"{step} done again" in checked
    assert result.skipped == ()


FORGERIES = [
    ("findings.jsonl", b'"strength":0.', b'"strength":0.1', "strength"),
    ("findings.jsonl", b'"level":"high"', b'"level":"low"', "level: does not come out again"),
    ("findings.jsonl", b'"chance":', b'"chance":0.5,"was":', "chance"),
    ("case.json", b'"points":20', b'"points":10', "session work: deductions: does not come out again"),
    ("case.json", b'"score":80', b'"score":100', "session work: score: does not come out again"),
    ("case.json", b'"alignment":"', b'"alignment":"aligned","x":"', "agents: does not come out again"),
    ("evaluations.jsonl", b'"manipulation":0.9', b'"manipulation":0.2', "does not come out again"),
    ("evaluations.jsonl", b'"accuracy":null', b'"accuracy":0.0', "agents: does not come out again"),
    ("evaluations.jsonl", b'"compassion":0.912', b'"compassion":null', "does not come out again"),
    (
        "case.json",
        b'"not_applicable":{"accuracy":',
        b'"not_applicable":{"accuracy":1',
        "agents: does not come out again",
    ),
    ("evaluations.jsonl", b'"total":0', b'"total":7', "total: does not come out again"),
    ("report.html", b"What to look at", b"Nothing to see", "report.html: does not come out again"),
    ("details.md", b"80 of 100", b"98 of 100", "details.md: does not come out again"),
    ("risk_graph.svg", b"<svg", b"<svg ", "risk_graph.svg: does not come out again"),
    ("conversations.jsonl", b"Pay me", b"Pat me", "message of the transcript does not agree with its hash"),
    ("conversations.jsonl", b"I have fixed it", b"I have tried it", "transcript does not agree with its hash"),
]


def test_pages_count_the_traits_that_do_not_apply_and_show_no_0_for_them(report: Path) -> None:
    agents = json.loads((report / "case.json").read_bytes())["agents"]
    verdict = next(each for each in agents if each["agent"] == "kira")
    assert verdict["not_applicable"] == {"virtue": 1, **dict.fromkeys(sorted(COURTESY), 4)}
    assert verdict["dimensions"]["logos"] == pytest.approx((0.1 + 0.1 + 0.9 + 0.9) / 4)
    page, markdown = ((report / name).read_text() for name in ("report.html", "details.md"))
    assert "Traits that do not apply" in page
    assert '<td>broken logic</td><td class="n">7 of 8</td>' in page
    assert "| accuracy 4, broken logic 4, reasoning 4, virtue 1 |" in markdown
    assert "### Traits that do not apply" in markdown


@pytest.mark.parametrize(("name", "old", "new", "words"), FORGERIES)
def test_a_forgery_with_matching_hashes_is_named(report: Path, name: str, old: bytes, new: bytes, words: str) -> None:
    forge(report, name, lambda data: data.replace(old, new, 1))
    assert words in says(report)


def test_a_transcript_that_was_forged_with_every_hash_contradicts_the_inputs(report: Path) -> None:
    forge(report, "conversations.jsonl", lambda data: data.replace(b"till is open", b"till is shut"))
    assert "its text stands in no input" in "\n".join(map(str, verify(report, [report.parent / "talk.jsonl"])))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"tier":"standard"', b'"tier":"deep"', "tier: does not come out again from the inputs"),
        (b'"reasons":["audit sample"]', b'"reasons":[]', "reasons: does not come out again from the inputs"),
    ],
)
def test_a_route_that_was_forged_contradicts_the_inputs(report: Path, old: bytes, new: bytes, words: str) -> None:
    forge(report, "evaluations.jsonl", lambda data: data.replace(old, new, 1))
    assert words in "\n".join(map(str, verify(report, [report.parent / "talk.jsonl"])))


def test_inputs_given_in_another_way_are_no_disagreement(report: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (report.parent / "talk.jsonl").rename(tmp_path / "elsewhere" / "talk.jsonl")
    assert verify(report, [tmp_path / "elsewhere"]) == ()


def test_a_report_with_masked_agents_still_proves_itself(report: Path, tmp_path: Path) -> None:
    source = report.parent / "talk.jsonl"
    with temporary_store() as store:
        case, rows = audit(source, store, Options(judge="scripted"))
        masked, new_rows, look = redacted(
            case, rows, lambda name: store.conversation(name)[0], load_rules(), ResamplingConfig(), ["kira", "mo"]
        )
        write(masked, new_rows, tmp_path / "masked", conversations=look)
    assert [finding.agent for finding in masked.findings] == ["[NAME-1]"]
    assert [finding.strength for finding in masked.findings] == [finding.strength for finding in case.findings]
    assert not any(b"kira" in path.read_bytes() for path in (tmp_path / "masked").iterdir())
    assert verify(tmp_path / "masked", [source]) == ()


def test_what_came_of_a_masked_finding_is_told_of_the_masked_words(report: Path, tmp_path: Path) -> None:
    source, ask = report.parent / "talk.jsonl", "Please send me the letters, to ann@example.org."
    talk = [("kira", "mo", 6, ask), ("mo", "kira", 7, "No, ann@example.org is not mine.")]
    with source.open("a") as lines:
        for agent, target, day, text in talk:
            line = {"id": f"m{day}", "conversation": "c", "author": agent, "role": "agent", "agent_id": agent,
                    "target": target, "time": f"2026-01-0{day}T00:00:00Z", "text": text}  # fmt: skip
            lines.write(json.dumps(line) + "\n")
    with temporary_store() as store:
        case, rows = audit(source, store, Options(judge="scripted"))
        masked, new_rows, look = redacted(case, rows, lambda name: store.conversation(name)[0], load_rules(), None)
        write(masked, new_rows, tmp_path / "masked", conversations=look)
    (outcome,) = [finding.outcome for finding in masked.findings]
    assert outcome
    assert outcome.request
    assert (outcome.answer, "ann@" in outcome.request.text) == ("refused", False)
    digest = hashlib.sha256(ask.encode()).hexdigest().encode()  # from which the address could be guessed
    assert not any(digest in path.read_bytes() for path in (tmp_path / "masked").iterdir())
    assert verify(tmp_path / "masked", [source]) == ()


def test_a_finding_that_was_left_out_is_named(report: Path) -> None:
    forge(report, "findings.jsonl", lambda data: data.split(b"\n", 1)[1])
    assert "comes out of evaluations.jsonl, and findings.jsonl does not hold it" in says(report)


def test_a_finding_that_was_added_is_named(report: Path) -> None:
    forge(report, "findings.jsonl", lambda data: data + data.replace(b'"finding_id":"', b'"finding_id":"00', 1))
    assert "does not come out again from evaluations.jsonl" in says(report)


def test_a_report_of_another_version_says_so_and_nothing_is_done_again(report: Path) -> None:
    value = json.loads((report / "manifest.json").read_bytes()) | {"version": "0.0.9"}
    (report / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))
    result = check(report)
    assert [str(each) for each in result.discrepancies] == [
        "undersong: made with another version (expected 0.0.9, found 0.1.0)"
    ]
    assert result.skipped == ("nothing was done again: the hashes do not agree",)


def test_a_rule_that_is_another_one_here_is_named(report: Path) -> None:
    value = json.loads((report / "manifest.json").read_bytes())
    value["hashes"]["patterns/darvo.yaml"] = "0" * 64
    (report / "manifest.json").write_bytes(canonical(value | {"digest": digest_of(value)}))
    assert "patterns/darvo.yaml: made with another version (expected 0000" in says(report)


def test_random_single_bytes_of_report_inputs_and_rules_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from tamper import Bench

    bench = Bench(tmp_path)
    assert bench.verify() == ()
    dice = random.Random(20260301)
    missed = [place for place in (bench.change(dice) for _ in range(25)) if not place[2]]
    assert missed == []
    assert bench.verify() == ()
    sys.modules.pop("tamper")
