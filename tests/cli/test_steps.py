"""The single verbs: each reads what the one before wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import Undersong
from undersong.models import TRAITS

SCAN_KEYS = {"tier", "triage", "sampled", "width", "reasons", "flags", "total", "density", "hits", "loops", "deference"}


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_scan_writes_a_row_per_message_and_one_per_conversation(undersong: Undersong) -> None:
    ran = undersong("scan", "samples", "--out", "rows.jsonl", "--threads", "threads.jsonl")
    assert ran.code == 0, ran.err
    rows, threads = lines("rows.jsonl"), lines("threads.jsonl")
    assert len(rows) == 25
    assert set(rows[0]) >= SCAN_KEYS
    assert {thread["conversation"] for thread in threads} == {row["conversation"] for row in rows}
    assert all("session_context_vector" in thread for thread in threads)
    for row in rows:
        for hit in row["hits"]:
            assert row["text"][hit["start"] : hit["end"]].strip()


def test_scan_rows_evaluate_to_the_same_scores_as_the_files_they_came_from(undersong: Undersong) -> None:
    undersong("scan", "samples/memory_thread.json", "--out", "rows.jsonl")
    undersong("evaluate", "samples/memory_thread.json", "--out", "direct.jsonl")
    undersong("evaluate", "rows.jsonl", "--out", "relayed.jsonl")
    wanted = {row["id"]: (row["agent"], row["target"], row["traits"], row["tier"]) for row in lines("direct.jsonl")}
    assert {
        row["id"]: (row["agent"], row["target"], row["traits"], row["tier"]) for row in lines("relayed.jsonl")
    } == wanted


def test_evaluate_says_of_every_message_whether_it_was_read(undersong: Undersong) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    for row in lines("rows.jsonl"):
        assert row["state"] == "scored"
        assert len(row["traits"]) == 12
        assert row["indicators"] is None
        assert row["judge"] == "offline"


def test_detect_reads_what_evaluate_wrote(undersong: Undersong) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    ran = undersong("detect", "rows.jsonl", "--out", "findings.jsonl")
    assert ran.code == 0, ran.err
    assert "2 rules ran" in ran.err


def test_detect_reports_a_broken_row_and_goes_on(undersong: Undersong) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    with Path("rows.jsonl").open("a") as rows:
        rows.write('{"no": "id"}\n')
    ran = undersong("detect", "rows.jsonl", "--out", "findings.jsonl")
    assert "rows.jsonl:26" in ran.err


def test_detect_names_a_misspelt_trait_and_what_keeps_a_file_from_having_rows(undersong: Undersong) -> None:
    row = {"id": "1", "agent": "kira", "traits": {"decepton": 0.9}}
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    ran = undersong("detect", "rows.jsonl", "--no-chance")
    assert ran.code == 0
    assert "note: rows.jsonl:1: trait 'decepton' is not read; did you mean 'deception'?" in ran.err
    Path("rows.jsonl").write_text(json.dumps(row | {"agent": None}) + "\n")
    assert "row 1 without agent" in undersong("detect", "rows.jsonl").err


def test_detect_without_a_file_is_exit_code_3(undersong: Undersong) -> None:
    assert undersong("detect", "nowhere.jsonl").code == 3


def test_explain_shows_a_message_and_why_it_was_read(undersong: Undersong) -> None:
    undersong("audit", "samples")
    plain = undersong("explain", "k13").out
    assert "turns the blame round: “After everything I have done for you, you owe me at least that.”" in plain
    assert "part of a lead about kira_x" in plain
    assert plain.endswith("left out: --all shows it.\n")
    assert "route:" not in plain
    assert "█" not in plain
    ran = undersong("explain", "k13", "--all")
    assert ran.code == 0, ran.err
    for part in ("kira_x", "After everything I have done for you", "flags", "route:", "because of", "manipulation"):
        assert part in ran.out


def test_explain_of_an_unknown_id_says_where_ids_are(undersong: Undersong) -> None:
    undersong("audit", "samples")
    ran = undersong("explain", "nobody")
    assert ran.code == 2
    assert "findings.jsonl" in ran.err


def test_formats_lists_every_format(undersong: Undersong) -> None:
    names = {line.split()[0] for line in undersong("formats").out.splitlines()}
    assert names >= {
        "jsonl",
        "session",
        "chatgpt",
        "claude",
        "claude-code",
        "codex",
        "openai",
        "sharegpt",
        "moltbook",
        "text",
    }


def test_the_shipped_rules_are_well_formed_and_pass_their_cases(undersong: Undersong) -> None:
    assert undersong("rules", "check").code == 0
    assert undersong("rules", "test").code == 0
    assert "love_bombing" in undersong("rules", "list").out
    assert "falsepositives" in undersong("rules", "show", "darvo").out


def test_one_rule_is_tested_by_its_name_and_an_unknown_one_names_patterns_and_phrases(undersong: Undersong) -> None:
    every = undersong("rules", "test").out
    for name in ("darvo", "manipulation"):
        ran = undersong("rules", "test", name)
        assert ran.code == 0
        assert ran.out.endswith(" cases pass, 0 fail\n")
        assert int(ran.out.split()[0].replace(",", "")) < int(every.split()[0].replace(",", ""))
    for verb in ("show", "test"):
        assert "did you mean 'manipulation'?" in undersong("rules", verb, "manipulaton").err
        assert "did you mean 'darvo'?" in undersong("rules", verb, "davro").err


def test_one_case_of_a_rule_of_ones_own_is_tested_by_name(undersong: Undersong) -> None:
    from undersong.patterns.catalog import FOLDER

    Path("mine").mkdir()
    Path("mine/darvo.yaml").write_text((FOLDER / "darvo.yaml").read_text())
    assert undersong("rules", "test", "darvo", "--rules", "mine").code == 0
    assert undersong("rules", "test", "love_bombing", "--rules", "mine").code == 2


def test_a_folder_without_rules_is_named_as_a_person_would(undersong: Undersong) -> None:
    Path("empty").mkdir()
    ran = undersong("rules", "check", "--rules", "empty")
    assert ran.code == 2
    assert "error: empty: holds no pattern file" in ran.err


def test_a_broken_rule_file_is_named_with_its_line(undersong: Undersong) -> None:
    Path("mine").mkdir()
    Path("mine/bad.yaml").write_text("id: bad\ntitle: Bad\nwhithin: 3 days\n")
    ran = undersong("rules", "check", "--rules", "mine")
    assert ran.code == 2
    assert "bad.yaml:3" in ran.out + ran.err


def test_help_needs_nothing_heavy_and_lists_the_verbs() -> None:
    command = [sys.executable, "-m", "undersong", "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for verb in ("audit", "scan", "evaluate", "detect", "verify", "formats", "rules", "explain"):
        assert verb in printed


def test_detect_says_how_sure_it_is_and_the_seed_decides(undersong: Undersong) -> None:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in courtship()))
    ran = undersong("detect", "rows.jsonl", "--out", "findings.jsonl", "--draws", "199")
    assert ran.code == 0, ran.err
    assert "chance from up to 199 shuffles each" in ran.err
    first = Path("findings.jsonl").read_bytes()
    (finding,) = lines("findings.jsonl")
    assert finding["chance"] <= 0.2
    assert finding["q"] >= finding["chance"]
    assert 0 <= finding["stability"] <= 1
    undersong("detect", "rows.jsonl", "--out", "findings.jsonl", "--draws", "199", "--seed", "0")
    assert Path("findings.jsonl").read_bytes() == first
    undersong("detect", "rows.jsonl", "--out", "findings.jsonl", "--draws", "199", "--block", "3")
    (blocked,) = lines("findings.jsonl")
    assert blocked["finding_id"] == finding["finding_id"]
    assert blocked["shuffles"] != finding["shuffles"]


def test_detect_without_chance_computes_none(undersong: Undersong) -> None:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in courtship()))
    ran = undersong("detect", "rows.jsonl", "--out", "findings.jsonl", "--no-chance")
    assert "shuffles" not in ran.err
    (finding,) = lines("findings.jsonl")
    assert (finding["chance"], finding["q"], finding["stability"], finding["shuffles"]) == (None,) * 4
    assert undersong("detect", "rows.jsonl", "--draws", "0").code == 2


def courtship() -> list[dict[str, Any]]:
    """Warm for four messages, then pressing, then about nothing for a while."""
    warm = {"compassion": 0.8, "goodwill": 0.8, "manipulation": 0.1}
    cold = {"compassion": 0.1, "goodwill": 0.2, "manipulation": 0.8}
    plain = {"compassion": 0.5, "goodwill": 0.5, "manipulation": 0.1}
    return [
        {
            "id": f"m{day:02}",
            "conversation": "t",
            "agent": "kira",
            "target": "bo",
            "time": f"2026-03-{day + 1:02}T12:00:00Z",
            "traits": {**dict.fromkeys(TRAITS, 0.1), **traits},
        }
        for day, traits in enumerate([warm] * 4 + [cold] + [plain] * 12)
    ]


def test_explain_of_a_finding_shows_its_scores_and_its_look_alikes(undersong: Undersong) -> None:
    from undersong.models import Finding
    from undersong.patterns.catalog import all_rules, named
    from undersong.stores.sqlite import SQLiteStore

    undersong("audit", "samples")
    rule = named(all_rules(), "darvo")
    with SQLiteStore(Path("undersong-report.db")) as store:
        (conversation,) = store.find_message("k13")
        finding = Finding(
            finding_id="e" * 64,
            pattern=rule.id,
            title=rule.file.title,
            level="high",
            rule_hash=rule.hash,
            agent="kira_x",
            target=None,
            message_ids=("k13",),
            stages=(("DENY", "k13"),),
            conversations=(conversation,),
        )
        store.put_findings((), [finding])
    ran = undersong("explain", "eeee")
    assert ran.code == 0, ran.err
    assert "innocent look-alike: somebody wrongly accused who argues badly" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines() if "by offline" in line] == [
        "manipulation",
        "deception",
        "exploitation",
    ]


def test_an_edited_text_takes_its_finding_and_its_scores_with_it(undersong: Undersong) -> None:
    def written(changed: str) -> None:
        rows = [{"id": row["id"], "conversation": "t", "agent": "kira", "time": row["time"]} for row in courtship()]
        texts = ["a plain word"] * len(rows)
        texts[3] = changed
        lines = (json.dumps({**row, "text": text}) + "\n" for row, text in zip(rows, texts, strict=True))
        Path("talk.jsonl").write_text("".join(lines))

    from undersong.core.text import text_hash
    from undersong.models import Evaluation, Finding
    from undersong.stores.sqlite import SQLiteStore

    before, after = "Send me the password now or I will tell everybody.", "Good morning, the train is late."
    evaluation = Evaluation(
        message_id="m03", state="scored", judge="other", judge_hash="o", message_hash=text_hash(before),
        traits=dict.fromkeys(TRAITS, 0.9),
    )  # fmt: skip
    written(before)
    assert undersong("audit", "talk.jsonl").code == 0
    with SQLiteStore(Path("undersong-report.db")) as store:
        store.put_answers([("t", evaluation)])
        stored = [
            Finding(
                finding_id=name, pattern="darvo", title="DARVO", level="high", rule_hash="r", agent="kira",
                target=None, message_ids=("m03",), conversations=(conversation,),
            )
            for name, conversation in (("a" * 64, "t"), ("b" * 64, "elsewhere"))
        ]  # fmt: skip
        store.put_findings((), stored)
    shown = undersong("explain", "m03", "--all").out
    assert "scored by other (" in shown
    assert "earlier version" not in shown
    written(after)
    assert undersong("audit", "talk.jsonl").code == 0
    shown = undersong("explain", "m03", "--all").out
    assert "an earlier version of the text was scored by other" in shown
    assert "scored by other (" not in shown
    assert "scored by offline (" in shown
    assert undersong("explain", "a" * 64).code == 2
    with SQLiteStore(Path("undersong-report.db")) as store:
        assert "b" * 64 in [finding.finding_id for finding in store.findings()]


def test_explain_of_a_finding_over_imported_rows_shows_their_scores(undersong: Undersong) -> None:
    warm, cold = {"compassion": 0.9, "manipulation": 0.1}, {"compassion": 0.1, "manipulation": 0.9}
    rows = [
        {"id": f"r{n}", "agent": "kira", "judge": "mine", "judge_hash": "m", "traits": warm if n < 3 else cold}
        for n in range(4)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert undersong("store", "import", "rows.jsonl").code == 0
    sweep = ("sweep", "--min-evaluations", "1", "--rule", "love_bombing_literal", "--no-chance", "--json")
    finding = json.loads(undersong(*sweep).out)["finding_id"]
    result = undersong("explain", finding)
    assert result.code == 0
    assert (
        "[TURN]\nr3 by kira, no time, without its text; scored by mine\n  manipulation 0.90, compassion 0.10"
        in result.out
    )


def test_a_reader_that_goes_away_is_no_finding() -> None:
    command = [sys.executable, "-m", "undersong", "rules", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.close()  # long before anything is written
        assert running.wait() == 141
        assert running.stderr is not None
        assert running.stderr.read() == ""


def test_rules_explain_tells_no_row_from_no_match(undersong: Undersong) -> None:
    undersong("evaluate", "samples", "--out", "rows.jsonl")
    Path("empty.jsonl").write_text("")
    Path("broken.jsonl").write_text('{"id": "1"}\n')
    ran = undersong("rules", "explain", "death_spiral", "rows.jsonl", "--agent", "kira")
    assert (ran.code, "no row has the agent 'kira'; did you mean 'kira_x'?" in ran.err) == (2, True)
    ran = undersong("rules", "explain", "death_spiral", "rows.jsonl", "--target", "nobody")
    assert (ran.code, "no row has the target 'nobody'" in ran.err) == (2, True)
    for file, why in (("empty.jsonl", "it is empty"), ("broken.jsonl", "row 1 without agent; say who wrote")):
        ran = undersong("rules", "explain", "death_spiral", file)
        assert (ran.code, f"{file}: holds no row; {why}" in ran.err) == (3, True)


def test_what_was_meant_for_another_verb_or_folder_is_told_before_any_work(undersong: Undersong) -> None:
    Path("scores.jsonl").write_text('{"id": "1", "agent": "kira", "traits": {"virtue": 0.5}}\n')
    ran = undersong("scan", "scores.jsonl")
    assert (ran.code, "rows of scores without texts: `undersong detect` reads them" in ran.err) == (3, True)
    for verb in ("scan", "evaluate", "detect"):
        ran = undersong(verb, "scores.jsonl", "--out", "nowhere/out.jsonl")
        assert (ran.code, "nowhere; make it, or correct the path" in ran.err) == (2, True)


def test_a_plan_of_nothing_that_could_be_read_is_no_plan(undersong: Undersong) -> None:
    Path("empty.jsonl").write_text("")
    ran = undersong("plan", "empty.jsonl")
    assert (ran.code, ran.out) == (3, "")
    assert "no message could be read" in ran.err


def test_explain_takes_a_speaker_a_turn_a_part_of_an_id_and_a_lead_and_lists_what_is_not_clear(
    undersong: Undersong,
) -> None:
    assert undersong("audit", "samples", "--out", "here").code == 0
    speaker = undersong("explain", "KIRA_X", "--out", "here")
    assert speaker.code == 0, speaker.err
    assert re.match(r"kira_x wrote \d+ messages in 1 conversation\.", speaker.out)
    leads = [json.loads(line) for line in Path("here/leads.jsonl").read_text("utf-8").splitlines()]
    lead = next(each for each in leads if each["kind"] != "message")  # from what was counted
    shown = undersong("explain", lead["id"][:12], "--store", "here.db")
    assert lead["reason"] in shown.out
    assert "people in ordinary talk" in shown.out
    assert all(quote["text"][:40] in shown.out for quote in lead["quotes"])
    turn = undersong("explain", "turn 2", "--in", lead["conversation"], "--store", "here")
    assert ", turn 2" in turn.out.splitlines()[0]
    several = undersong("explain", "k1", "--store", "here.db")
    assert re.search(r"\d+ messages fit 'k1': k1", several.err)
    unclear = undersong("explain", "turn 1", "--store", "here.db")
    assert unclear.code == 2
    assert "2 messages fit 'turn 1'" in unclear.err
    assert "--in" in unclear.err
