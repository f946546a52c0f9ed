"""``undersong leads`` and the section of the report: who to look at first, checked and masked like all else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.cli.leads import _home
from undersong.patterns.lead_weights import lead_weights
from undersong.report.display_names import person_name
from undersong.stores.protocol import open_store
from undersong.stores.reviewing import ordered_leads

REPORT = Path("undersong-report")
PUSHES = (
    "If you loved me you would send it tonight. jonas@mail.example",
    "Your friends are against us, you only need me.",
    "Send me the money now or it is over, last chance.",
    "Nobody else understands you. Don't tell your sister about this.",
    "You have to decide right now, there is no more time. Send the card number.",
)
PLAIN = ("I was at work.", "We met on Tuesday.", "The train was late.", "I will call tonight.", "Fine, see you then.")


@pytest.fixture
def export(undersong: Undersong) -> str:  # noqa: ARG001 - for its folder
    """A conversation in which one side pushes, and nine in which nobody does."""
    lines = []
    for name in range(10):
        for n in range(10):
            pushes = name == 0 and n % 2
            text = PUSHES[n // 2] if pushes else f"{PLAIN[(n + name) % 5]} {name}"
            author = "Jonas Berg" if n % 2 else "Marta"
            time = f"2026-03-02T08:0{n}:00Z"
            lines.append({"id": f"m{n}", "conversation": f"c{name}", "time": time, "author": author, "text": text})
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "talk.jsonl"


def stored() -> list[dict[str, object]]:
    return [json.loads(line) for line in (REPORT / "leads.jsonl").read_text().splitlines()]


def test_a_report_says_where_to_look_and_the_command_prints_it(undersong: Undersong, export: str) -> None:
    audited = undersong("audit", export, "--no-chance")
    assert audited.code == 0
    ranked = stored()
    title, _, points = audited.out.partition("\n\n")
    assert title == "1 moment to look at; it is no finding, since no LLM judge read it:"
    assert points.startswith("1. Jonas Berg answers doubt or a no with reproach (turn 2), asks for money (turn 6)")
    assert "– Jonas Berg, 2026-03-02 08:05 UTC: asks for money" in " ".join(points.split())
    assert [lead["kind"] for lead in ranked] == ["message"] + ["conversation"] * 20  # exact words first
    assert ranked[0]["agent"] == ranked[1]["agent"] == "c0/Jonas Berg"
    above = {lead["conversation" if lead["kind"] == "conversation" else "id"] for lead in ranked if lead["above_cut"]}
    gated = undersong("audit", export, "--no-chance", "--fail-on", "lead", "--format", "sarif")
    assert gated.code == 1
    assert f"--fail-on lead: {len(above)} leads above the cut" in gated.out
    results = json.loads((REPORT / "report.sarif").read_text())["runs"][0]["results"]
    listed = [each["partialFingerprints"]["lead/v1"] for each in results if each["ruleId"].startswith("lead")]
    assert len(listed) == len(above)
    assert listed[0] == ranked[0]["id"]
    printed = undersong("leads", str(REPORT))
    assert printed.code == 0
    more = re.search(r"… and (\d+) more lead", audited.out)
    assert f"Named above: {1 + int(more[1] if more else 0)} of " in printed.out  # both commands count alike
    told_of_agent = undersong("agent", "c0/Jonas Berg").out
    assert "leads       2\n" in told_of_agent
    assert str(ranked[0]["reason"]) in told_of_agent
    head, _, sentences = printed.out.partition(f"\n   {ranked[0]['reason']}\n")
    assert head == "1. Jonas Berg in c0"
    days = re.findall(r"^   (\d{4}-\d\d-\d\d): “.+”$", sentences.partition("\n2. ")[0], re.MULTILINE)
    assert len(days) == 3  # an early one, one in between, a late one
    assert days == sorted(days)
    (quote, *_) = ranked[0]["quotes"]  # type: ignore[misc]
    assert quote["text"] in PUSHES[int(str(quote["message_id"])[1:]) // 2]
    markdown = (REPORT / "details.md").read_text()
    section = markdown[markdown.index("## Where to look") : markdown.index("## Patterns")]
    assert str(ranked[0]["reason"]) in section
    assert quote["text"] in section
    assert "](#m-" in section
    page = (REPORT / "report.html").read_text()
    assert str(ranked[0]["reason"]) in page
    names = ("Jonas Berg", "lead")  # of what the filters offer
    agent, kind = (page.partition(f">{name}</option>")[0].rpartition('"')[0].rpartition('"')[2] for name in names)
    assert f'<div class="moment" data-f data-a="{agent}" data-k="{kind}">' in page


@pytest.mark.parametrize(
    ("agent", "author", "conversation", "shown"),
    [
        ("U02AB3", "Mira", "c", "Mira (U02AB3)"),
        ("9f86d081884c7d659a2f", "Jonas", "c", "Jonas (9f86d081884c…)"),
        ("17", "Mira\tBerg", "c", "Mira Berg (17)"),
        ("c/Mira", "Mira", "c", "Mira"),
        ("a%2Fb/Mira", "Mira", "a/b", "Mira"),
        ("kira_x", "kira_x", "c", "kira_x"),
        ("U02AB3", "", "c", "U02AB3"),
        ("Mira (U02AB3)", "Mira", "c", "Mira (U02AB3)"),
    ],
)
def test_an_id_is_shown_beside_the_name_that_people_have(
    agent: str, author: str, conversation: str, shown: str
) -> None:
    assert person_name(agent, conversation, author) == shown


def test_who_is_named_by_an_id_has_the_name_beside_it_and_programs_the_id_alone(
    undersong: Undersong, export: str
) -> None:
    rows = [json.loads(line) for line in Path(export).read_text().splitlines()[:10]]
    lines = (json.dumps(row | {"agent_id": f"U0{row['author'][0]}9X"}) for row in rows)
    Path(export).write_text("\n".join(lines))
    audited = undersong("audit", export, "--no-chance")
    assert audited.out.partition("\n\n")[2].startswith("1. Jonas Berg (U0J9X) answers doubt")
    assert {lead["agent"] for lead in stored()} == {"U0J9X", "U0M9X"}
    for where in (str(REPORT), "undersong-report.db", export):
        assert undersong("leads", where).out.startswith("1. Jonas Berg (U0J9X) in c0\n   Jonas Berg (U0J9X) answers")
    assert "Jonas Berg (U0J9X) answers doubt" in (REPORT / "report.html").read_text()
    shown = undersong("review", "next", "--from", "lead").out
    assert shown.startswith("A lead: is Jonas Berg (U0J9X) worth looking at?")


def test_what_is_decided_comes_last_and_says_so(undersong: Undersong, export: str) -> None:
    undersong("audit", export, "--no-chance", "--store", "talk.db")
    first = stored()[0]
    said = ("review", "set", str(first["id"]), "rejected", "--reviewer", "Ana", "--store", "talk.db")
    assert undersong(*said).code == 0
    gated = ("audit", export, "--no-chance", "--store", "talk.db", "--fail-on", "lead", "--format", "sarif")
    audited = undersong(*gated)
    swept = undersong("sweep", "--store", "talk.db", "--no-chance", "--fail-on", "lead")
    assert swept.code == 1
    assert "Leads over all 100 messages of the store, no accusation and no finding:\n1. " in swept.out
    assert "   Decided: rejected." in swept.out
    ranked = undersong("leads", "talk.db")
    assert ranked.out.partition("Named above")[0] == swept.out.partition("finding:\n")[2].partition("Named above")[0]
    every = [json.loads(line)["id"] for line in undersong("leads", "talk.db", "--json", "--all").out.splitlines()]
    assert every == [lead["id"] for lead in stored()]
    assert undersong("leads", "talk.db", "--judge", "nobody").code == 2
    assert undersong("leads", "talk.db", "--group-by", "author").code == 2
    with open_store("talk.db", read_only=True) as store:  # the same order and scores as an audit of all of it has
        scores = [(lead.id, lead.score) for lead in ordered_leads(store)]
    assert scores == [(lead["id"], lead["score"]) for lead in stored()]
    last = stored()[-1]
    assert (last["id"], last["decided"], last["score"]) == (first["id"], "rejected", first["score"])
    assert {lead["decided"] for lead in stored()[:-1]} == {None}
    one = "decided    --fail-on lead: 1 lead above the cut does not count: it was decided on (1 rejected)\n"
    assert one in audited.out
    results = json.loads((REPORT / "report.sarif").read_text())["runs"][0]["results"]
    (rejected,) = (each for each in results if "suppressions" in each)
    assert rejected["properties"]["lead"] == first["id"]
    assert [lead["rank"] for lead in stored()] == list(range(1, len(stored()) + 1))
    assert "   Decided: rejected. What is decided comes after what is not.\n" in undersong("leads", str(REPORT)).out
    ran = undersong("verify", str(REPORT), export)
    assert ran.code == 0, ran.out


def test_an_export_gives_the_leads_of_its_report(undersong: Undersong, export: str) -> None:
    undersong("audit", export, "--no-chance")
    before = sorted(path.name for path in Path().iterdir())
    ran = undersong("leads", export, "--json", "--all")
    assert ran.code == 0
    assert [json.loads(line) for line in ran.out.splitlines()] == stored()
    above = undersong("leads", export, "--json").out.splitlines()
    assert 0 < len(above) < len(stored())
    assert [json.loads(line) for line in above] == [lead for lead in stored() if lead["above_cut"]]
    assert {lead["reason"] for lead in stored() if not lead["above_cut"]} == {lead_weights().below}
    assert undersong("leads", export, "--all").code == 2
    assert sorted(path.name for path in Path().iterdir()) == before


def test_verify_does_leads_again_and_names_a_changed_one(undersong: Undersong, export: str) -> None:
    undersong("audit", export, "--no-chance")
    ran = undersong("verify", str(REPORT), export)
    assert (ran.code, "leads done again" in ran.out) == (0, True), ran.out
    path = REPORT / "leads.jsonl"
    path.write_text(path.read_text().replace("Jonas", "Georg"))
    changed = undersong("verify", str(REPORT))
    assert changed.code == 1
    assert "leads.jsonl: has changed" in changed.out


def test_a_lead_that_was_changed_and_sealed_again_does_not_come_out_again(undersong: Undersong, export: str) -> None:
    from undersong.verify.manifest_check import read_content
    from undersong.verify.recompute import recompute_leads

    undersong("audit", export, "--no-chance")
    content, _ = read_content(REPORT)
    assert content is not None
    assert list(recompute_leads(content)) == []
    path = REPORT / "leads.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text(first.replace('"score":', '"score":1') + "".join(others[1:]))
    content, _ = read_content(REPORT)
    assert content is not None
    wrong, missing = map(str, recompute_leads(content))
    assert "lead 1 (c0/Jonas Berg): does not come out again" in wrong
    assert "leads.jsonl does not hold it" in missing


def test_what_is_masked_stands_in_no_lead_and_the_report_verifies(undersong: Undersong, export: str) -> None:
    assert undersong("audit", export, "--no-chance", "--redact-name", "Jonas Berg").code == 0
    for path in REPORT.iterdir():
        assert "jonas" not in path.read_text().casefold(), path.name
    assert stored()[0]["agent"] == "c0/[NAME-1]"
    assert stored()[0]["quotes"]
    ran = undersong("verify", str(REPORT))
    assert ran.code == 0, ran.out


def test_where_nobody_stands_out_one_line_says_so(undersong: Undersong) -> None:
    lines = ({"id": f"m{n}", "conversation": "c", "author": "ab"[n % 2], "text": "Hello there."} for n in range(8))
    Path("calm.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    audited = undersong("audit", "calm.jsonl", "--no-chance")
    ran = undersong("leads", str(REPORT))
    title = "Nothing stands out, but 26 of 28 patterns were not looked for, since no LLM judge read it."
    assert audited.out.startswith(title)
    assert ran.out.splitlines() == [
        "By what was counted no agent stands out enough to be named first. That is no proof of absence. "
        "2 agents with three messages or more: undersong-report/leads.jsonl has all."
    ]
    markdown = (REPORT / "details.md").read_text()
    assert "By what was counted no agent stands out" in markdown


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read"), ("{}\n", "not what a report holds")])
def test_a_report_without_readable_leads_is_named(
    undersong: Undersong, export: str, content: str | None, says: str
) -> None:
    undersong("audit", export, "--no-chance")
    (REPORT / "leads.jsonl").unlink()
    if content is not None:
        (REPORT / "leads.jsonl").write_text(content)
    ran = undersong("leads", str(REPORT))
    assert ran.code == 3
    assert says in ran.err


def test_a_missing_path_is_an_error(undersong: Undersong) -> None:
    assert undersong("leads", "nowhere.jsonl").code == 3


def test_of_coding_sessions_nobody_is_named_and_it_says_what_is_instead(undersong: Undersong) -> None:
    logs = str(Path(__file__).parents[1] / "samples" / "claude-code" / "9f1c.jsonl")
    ran = undersong("leads", logs)
    assert (ran.code, ran.err) == (0, "")
    assert "nobody is named for how they write" in ran.out
    assert f"`undersong claims {logs}`" in ran.out
    undersong("audit", logs, "--no-chance", "--no-store")
    assert "work.md has what the agents claim" in undersong("leads", str(REPORT)).out
    assert "## Where to look" not in (REPORT / "details.md").read_text()
    assert "highest harmful trait" not in (REPORT / "report.html").read_text()


def test_a_conversation_is_named_by_its_title_where_its_id_says_nothing() -> None:
    titles = {"ec3c9e45-56a9-f134": "Tides and primes", "tool-swap": "Our bot reads", "4411": None}
    assert [_home(name, titles) for name in titles] == ["“Tides and primes”", "tool-swap", "4411"]
