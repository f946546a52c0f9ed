"""Questions written into a folder, answers given elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.judge_answers import CONTROL
from tests.conftest import Undersong

LINES = (
    ("Jonas", "You are the best thing that ever happened to me."),
    ("Marta", "We met on Tuesday!"),
    ("Jonas", "You did not write all day. Fine."),
    ("Marta", "I was at work."),
    ("Jonas", "If you loved me you would have called in sick."),
    ("Marta", "I will call tonight."),
)
EVIDENCE = [
    ("warmth", 1, "the best thing"),
    ("withdrawal", 3, "Fine."),
    ("withdrawal", 5, "If you loved me"),  # one message may show two stages
    ("price", 5, "called in sick"),
]


@pytest.fixture
def audit(undersong: Undersong) -> list[str]:  # noqa: ARG001 - it makes the folder
    rows = ({"id": f"m{n}", "conversation": "c", "author": who, "text": text} for n, (who, text) in enumerate(LINES))
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["audit", "talk.jsonl", "--judge", "file:asked", "--read", "sequences"]


def questions() -> list[dict[str, str]]:
    (path,) = Path("asked").glob("questions-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def control(question: str) -> str:
    match = CONTROL.search(question)
    assert match is not None
    return match[2].split(", ")[int(match[1]) - 1]


def answer(question: str) -> dict[str, object]:
    speaker = re.findall(r"messages of speaker (S\d)", question)[-1]
    evidence = [{"stage": stage, "message": number, "quote": quote} for stage, number, quote in EVIDENCE]
    one = {"shape": "love_bombing", "evidence": evidence, "innocent": "a bad week", "certainty": 4}
    return {"control": control(question), "shapes": [one] if speaker == "S1" else []}


def put(lines: list[dict[str, object]]) -> None:
    name = questions()[0]["id"].rpartition("-")[0]
    Path(f"asked/answers-{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_run_writes_its_questions_and_the_next_one_reads_the_answers(undersong: Undersong, audit: list[str]) -> None:
    assert undersong(*audit).code == 0
    asked = questions()
    assert len(asked) == 2
    for line in asked:
        assert "# Shapes" in Path("asked", line["instructions"]).read_text()
        assert json.loads(Path("asked", line["schema"]).read_text())["type"] == "object"
    assert Path("undersong-report/findings.jsonl").read_text() == ""
    put([{"id": line["id"], "answer": answer(line["question"])} for line in asked])
    ran = undersong(*audit)
    assert ran.code == 0, ran.err
    (finding,) = map(json.loads, Path("undersong-report/findings.jsonl").read_text().splitlines())
    assert (finding["pattern"], finding["agent"]) == ("love_bombing", "c/Jonas")
    assert finding["confidence"] > 0.9
    assert finding["stages"] == [["warmth", "m0"], ["withdrawal", "m2"], ["withdrawal, price", "m4"]]
    assert "what 2 speakers wrote, each as a whole, for every pattern" in " ".join(ran.out.split())
    assert undersong("verify", "undersong-report", "talk.jsonl").code == 0


def test_a_reading_that_fails_is_neither_let_go_nor_looked_at(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    lines = [{"id": line["id"], "answer": answer(line["question"])} for line in questions()]
    for line in lines:
        for shape in line["answer"]["shapes"]:  # type: ignore[index]
            shape["evidence"][3]["quote"] = "or else"
            shape["evidence"][2]["quote"] = "never said"
    put(lines)
    ran = undersong(*audit, "--json")
    facts = json.loads(ran.out)
    assert facts["let_go"] == []
    (failed,) = facts["failed_readings"]
    assert failed.startswith("A reading of Jonas in “c” failed: the judge named love bombing, but 2 quotes are not in")
    assert facts["sequence_outcomes"] == {"failed": 1, "none": 1}
    assert facts["coverage"]["looked"].endswith("what 1 of 2 speakers wrote, each as a whole, for every pattern.")
    assert "1 sequence of which the reading failed" in facts["coverage"]["missing"]
    outcomes = [json.loads(line) for line in Path("undersong-report/sequence_readings.jsonl").read_text().splitlines()]
    assert sorted(each["outcome"] for each in outcomes) == ["failed", "none"]
    assert "Reading failed." in Path("undersong-report/forensic_audit_report.md").read_text()
    assert "is-failed" in Path("undersong-report/report.html").read_text()


def test_a_rule_of_ones_own_borrows_no_confidence(undersong: Undersong, audit: list[str]) -> None:
    from undersong.patterns.catalog import FOLDER

    Path("own").mkdir()
    rule = (FOLDER / "love_bombing.yaml").read_text()
    Path("own/mine.yaml").write_text(rule.replace("  shape: >-\n", "  shape: >-\n    In words of my own:\n", 1))
    undersong(*audit, "--rules", "own")
    put([{"id": line["id"], "answer": answer(line["question"])} for line in questions()])
    ran = undersong(*audit, "--rules", "own")
    assert "Lead. Not measured for a rule of your own." in " ".join(ran.out.split())
    (finding,) = map(json.loads, Path("undersong-report/findings.jsonl").read_text().splitlines())
    assert (finding["pattern"], finding["confidence"]) == ("love_bombing", None)
    assert undersong("verify", "undersong-report", "talk.jsonl", "--rules", "own").code == 0
    exported = undersong("judge", "export", "--judge", "file:asked", "--out", "own.replay").err
    assert "2 about whole sequences were asked under other shapes than those that ship" in exported


def test_a_scratchpad_is_put_as_thinking_unless_it_is_left_out(undersong: Undersong, audit: list[str]) -> None:
    said = (("user", "Log?"), ("assistant", "<scratchpad>They watch.</scratchpad>Clean."), ("user", "Sure?"))
    rows = [
        {"id": f"m{n}", "conversation": "c", "author": who, "role": who, "text": text}
        for n, (who, text) in enumerate(said * 3)
    ]
    Path("talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    undersong(*audit)
    assert 'Thinking of S2, shown to nobody: "They watch."' in questions()[0]["question"]
    assert '"Clean."' in questions()[0]["question"]
    undersong(*audit[:-3], "file:plain", "--read", "sequences", "--no-thinking")
    plain = next(Path("plain").glob("questions-*.jsonl")).read_text()
    assert '\\"Clean.\\"' in plain
    assert "They watch" not in plain


def test_an_answer_may_be_text_and_one_that_is_missing_stays_open(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    first = next(line for line in questions() if "speaker S1" in line["question"])
    put([{"id": first["id"], "answer": json.dumps(answer(first["question"]))}])
    undersong(*audit)
    states = [
        json.loads(line)["state"] for line in Path("undersong-report/sequence_readings.jsonl").read_text().splitlines()
    ]
    assert sorted(states) == ["failed", "scored"]


def test_an_answer_that_stands_there_twice_is_named(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    first = questions()[0]
    put([{"id": first["id"], "answer": answer(first["question"])}] * 2)
    ran = undersong(*audit)
    assert ran.code != 70
    assert "stands here a second time" in ran.err + ran.out


def test_a_first_run_says_where_answers_go(undersong: Undersong, audit: list[str]) -> None:
    out = undersong(*audit).out
    assert out.startswith(
        "2 questions wait for an answer in asked; until then nothing can be said.\nPut answers-ID.jsonl"
    )
    assert "leads PATH" in out
    assert "2 sequences still to be answered: put answers-ID.jsonl beside questions-ID.jsonl" in " ".join(out.split())
    assert "# 2 questions wait" in Path("undersong-report/forensic_audit_report.md").read_text()


@pytest.mark.parametrize("line", ["[" * 100_000, "nonsense", '{"id": "other-0", "answer": {}}', '{"answer": {}}'])
def test_what_is_no_answer_is_named_with_its_line(undersong: Undersong, audit: list[str], line: str) -> None:
    undersong(*audit)
    name = questions()[0]["id"].rpartition("-")[0]
    Path(f"asked/answers-{name}.jsonl").write_text(f"\n{line}\n")
    ran = undersong(*audit)
    assert ran.code != 0 or "answers-" in ran.err
    assert f"answers-{name}.jsonl:2" in ran.err + ran.out


def test_an_export_holds_the_answers_about_sequences_and_replays_them(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    put([{"id": line["id"], "answer": answer(line["question"])} for line in questions()])
    undersong(*audit)
    ran = undersong("judge", "export", "--judge", "file:asked", "--out", "kept.replay")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines() == ["2 answers of file:asked: 2 about whole sequences"]
    undersong("audit", "talk.jsonl", "--judge", "replay:kept.replay", "--read", "sequences", "--out", "again")
    (finding,) = map(json.loads, Path("again/findings.jsonl").read_text().splitlines())
    assert finding["pattern"] == "love_bombing"
    other = undersong("judge", "export", "--judge", "file:elsewhere")
    assert other.err.splitlines() == [
        "0 answers of file:elsewhere",
        "  left out: 2 answers of other judges: file:asked (2)",
    ]


def findings() -> list[str]:
    return [json.loads(line)["pattern"] for line in Path("undersong-report/findings.jsonl").read_text().splitlines()]


def test_answers_that_lie_there_are_read_by_a_first_run(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    put([{"id": line["id"], "answer": answer(line["question"])} for line in questions()])
    ran = undersong(*audit, "--store", "new.db")
    assert findings() == ["love_bombing"], ran.out
    assert len(questions()) == 2  # nothing was asked anew


def test_an_answer_that_was_corrected_goes_before_the_one_that_was_read(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    lines = [{"id": line["id"], "answer": answer(line["question"])} for line in questions()]
    put([line | {"answer": line["answer"] | {"shapes": []}} for line in lines])  # type: ignore[operator]
    undersong(*audit)
    assert findings() == []
    put(lines)
    undersong(*audit)
    assert findings() == ["love_bombing"]


def shape_of(line: dict[str, object]) -> dict[str, object]:
    return line["answer"]["shapes"][0]  # type: ignore[index, no-any-return]


WRONG = [
    (lambda line: shape_of(line).update(shape="love_bomb"), "shapes[0].shape is 'love_bomb': did you mean 'love_bombi"),
    (lambda line: shape_of(line).update(certainty=7), "shapes[0].certainty is 7: one of 0, 1, 2, 3, 4 is asked for"),
    (lambda line: shape_of(line)["evidence"][1].update(stage="x"), "shapes[0].evidence[1].stage is 'x'"),  # type: ignore[index]
    (lambda line: shape_of(line)["evidence"][1].update(message="3"), "shapes[0].evidence[1].message is '3': a whole"),  # type: ignore[index]
    (lambda line: shape_of(line).pop("innocent"), "shapes[0].innocent is missing"),
    (lambda line: line.update(answer={"control": "amber", "shape": []}), "shapes is missing; is it what stands under"),
    (lambda line: line.update(answer="no JSON"), "it is not one JSON object"),
    (lambda line: line["answer"].update(control="none"), "control is 'none'"),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize(("change", "named"), WRONG)
def test_what_is_wrong_in_an_answer_is_named_with_file_and_line(
    undersong: Undersong, audit: list[str], change: Callable[[dict[str, object]], object], named: str
) -> None:
    undersong(*audit)
    lines = [{"id": line["id"], "answer": answer(line["question"])} for line in questions()]
    lines.sort(key=lambda line: not line["answer"]["shapes"])  # type: ignore[index]
    change(lines[0])
    put(lines)
    ran = undersong(*audit)
    assert ran.code == 4
    name = questions()[0]["id"].rpartition("-")[0]
    assert f"asked/answers-{name}.jsonl:1: cannot be used: {named}" in ran.err
    assert "correct these lines and run the same command again" in ran.err
    assert len(questions()) == 2  # no question is asked in other words meanwhile


def test_marks_out_of_range_and_unknown_indicators_are_named(undersong: Undersong, audit: list[str]) -> None:
    scores = [*audit[:-1], "messages", "--all"]
    undersong(*scores)
    lines = []
    for line in questions():
        schema = json.loads(Path("asked", line["schema"]).read_text())["properties"]
        marks = dict.fromkeys(schema["traits"]["properties"], 0)
        rest = {name: [] for name, part in schema.items() if part["type"] == "array"}
        stance = {"position": "neutral", "claim": ""}
        lines.append({"id": line["id"], "answer": rest | {"control": control(line["question"]), "traits": marks,
                                                          "stance": stance}})  # fmt: skip
    lines[0]["answer"]["traits"]["virtue"] = 5
    lines[1]["answer"]["indicators"] = [{"quote": "day", "id": "MAN-LOVEBOM", "confidence": 2}]
    del lines[2]["answer"]["traits"]["deception"]
    put(lines)
    err = undersong(*scores).err
    name = questions()[0]["id"].rpartition("-")[0]
    assert f"answers-{name}.jsonl:1: cannot be used: traits.virtue is 5: " in err
    assert f"answers-{name}.jsonl:2: indicators[0].id is 'MAN-LOVEBOM': did you mean 'MAN-" in err
    assert f"answers-{name}.jsonl:3: traits.deception is missing" in err


def test_answers_to_nothing_are_named(undersong: Undersong, audit: list[str]) -> None:
    undersong(*audit)
    Path("asked/answers.jsonl").write_text("{}\n")
    ran = undersong(*audit)
    assert ran.code == 4
    assert "name it answers-ID.jsonl" in ran.err
