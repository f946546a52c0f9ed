"""``undersong explain``: everything that led to a message's scores or to a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from undersong.cli.explain_names import (
    lead_lines,
    leads_about,
    leads_of_id,
    meanings,
    speaker_lines,
    the_message,
    whole_id,
)
from undersong.cli.explain_words import in_words
from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, echo, existing_store
from undersong.core.sanitize import one_line
from undersong.core.text import counted, plain_name, text_hash, turn_at
from undersong.errors import UsageError
from undersong.models import NEGATIVE_TRAITS, Evaluation, Message
from undersong.models.verdict import REQUEST
from undersong.report.escape import own_name
from undersong.report.message_times import LOCAL
from undersong.report.narrative import certainty_words, outcome_words

if TYPE_CHECKING:
    from undersong.models import Finding, Lead, Route, Scan, SessionVerdict
    from undersong.report.finding_view import RuleWords
    from undersong.stores.protocol import Store

SCORES_LEFT_OUT = "What the program counted (hits, signals, route, scores) is left out: --all shows it."
MANIFEST = "manifest.json"  # a folder that holds it is that of a report


@click.command(
    "explain",
    **examples(
        (
            "undersong explain turn-05 --store undersong-report.db",
            "what is in a message; --all: what its scores rest on",
        ),
        ("undersong explain Mark", "a speaker: messages, findings, and what a lead rests on"),
        ("undersong explain 316 --in CONVERSATION", "the message at turn 316"),
        ("undersong explain 9a5d --out undersong-report", "the beginning of an id; the report as the audit named it"),
    ),
)
@click.argument("name", metavar="ID|SPEAKER|TURN")
@click.option(
    "--store",
    "--out",
    default=DEFAULT_STORE,
    show_default=True,
    metavar="FILE|URL|DIR",
    help="The store of the audit, or the folder of its report.",
)
@click.option("--in", "home", metavar="CONVERSATION", help="Only in this conversation, where several have the ID.")
@click.option("--all", "--scores", "scores", is_flag=True, help="Also hits, signals, route and scores of a message.")
def command(name: str, store: str, home: str | None, scores: bool) -> None:
    """Explain a message, a finding, a lead or a speaker, in words; --all adds what was counted of a message.

    A turn is a message: "turn 8" is the eighth of its conversation, answers of tools counted. Of a claim about work,
    or a way round a check, it shows the check with its output, the edits and the claim in their order, and the command
    that opens the session.

    The beginning of an id is enough where one alone begins so. In the folder of a report the store is the one beside
    it; leads are read from the report beside the store.
    """
    address = beside_report(store)
    with existing_store(address) as opened_store:
        leads = _leads_beside(address) or _leads_in(opened_store)
        echo(_asked(opened_store, name, home, leads, scores))


def _asked(store: Store, name: str, home: str | None, leads: Sequence[Lead], scores: bool) -> Iterator[str]:
    """The lines about whatever is meant; raises UsageError where that is nothing, or several."""
    whole = whole_id(store, name, home)
    if whole is not None:
        return explanation(store, *whole, leads=leads, scores=scores)
    about, meant = leads_about(leads, name), meanings(store, name, home)
    if meant.speakers:
        return speaker_lines(store, meant.speakers, about)
    if by_id := leads_of_id(leads, name) or about:
        return _each_lead(by_id, leads)
    if meant.messages:
        return explanation(store, *the_message(name, meant.messages), leads=leads, scores=scores)
    raise _unknown(name)


def _each_lead(leads: Sequence[Lead], every: Sequence[Lead]) -> Iterator[str]:
    for lead in leads:
        yield from lead_lines(lead, every)


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"no message or finding '{name}', and no lead, speaker or turn of that name",
        remedy="ids are in findings.jsonl, leads.jsonl and evaluations.jsonl",
    )


def _leads_beside(address: str) -> Sequence[Lead]:
    """The leads of the report that a store stands beside; none where there is no report."""
    import msgspec

    from undersong.models import Lead, decode
    from undersong.report.writer import LEADS

    path = Path(address).with_suffix("") / LEADS
    try:
        return [decode(line, Lead) for line in path.read_bytes().split(b"\n") if line]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return ()


def _leads_in(store: Store) -> Sequence[Lead]:
    """The leads that a store holds, where it keeps some."""
    return tuple(store.leads()) if store.keeps_reviews else ()


def explanation(
    store: Store, name: str, home: str | None = None, *, leads: Sequence[Lead] = (), scores: bool = False
) -> Iterator[str]:
    """The lines about a message, or about a finding by the beginning of its id; raises UsageError for neither.

    ``home``: only in this conversation. ``leads`` are those that may rest on it. ``scores``: also what was counted.
    """
    findings = [finding for finding in store.findings() if finding.finding_id.startswith(name)]
    conversations = tuple(one for one in store.find_message(name) if home in (None, one))
    if not conversations and len(findings) != 1:
        what = f"{len(findings)} findings begin with '{name}'" if findings else f"no message or finding '{name}'"
        raise UsageError(what, remedy="ids are in findings.jsonl, leads.jsonl and evaluations.jsonl")
    for conversation in conversations:
        yield from _message_lines(store, conversation, name, leads, scores)
    if not conversations:
        yield from _finding_lines(store, findings[0])


def beside_report(store: str) -> str:
    """The store beside a report that is named, or whose folder one is in where there is none of the usual name."""
    if (Path(store) / MANIFEST).is_file():
        whole = Path(store).absolute()
        return str(whole.parent / f"{whole.name}.db")
    here = Path.cwd()
    beside = here.parent / f"{here.name}.db"
    usual = store == DEFAULT_STORE and not Path(store).exists()
    return str(beside) if usual and (here / MANIFEST).exists() and beside.exists() else store


def _message_lines(
    store: Store, conversation_id: str, message_id: str, leads: Sequence[Lead], scores: bool
) -> Iterator[str]:
    from undersong.cli.explain_work import work_lines
    from undersong.pipeline.session_check import verdict_of

    conversation, scans, thread = store.conversation(conversation_id)
    place = next(index for index, message in enumerate(conversation.messages) if message.id == message_id)
    message, routes = conversation.messages[place], store.routes(conversation_id)
    yield from _header(message, conversation.source_format)
    yield ""
    verdict = verdict_of(conversation, scans, thread)
    work = list(work_lines(conversation, verdict, message_id))
    yield from work
    yield from _request_lines(verdict, message_id)
    now, earlier = _evaluations(store, message)
    if not work:
        yield from in_words(store, message, scans[place], verdict, leads, now)
    if not scores:
        yield SCORES_LEFT_OUT
        return
    yield from _scan_lines(scans[place], message)
    for signal in thread.signals:
        if message_id in signal.message_ids:
            yield f"  thread signal: {signal.kind}{f' on {signal.trait}' if signal.trait else ''}"
    yield from _route_lines(routes[place]) if routes else ("not routed yet",)
    for evaluation in now:
        yield from _evaluation_lines(evaluation)
        yield from why_lines(evaluation, message, sorted(NEGATIVE_TRAITS))
    yield from (f"an earlier version of the text was scored by {each.judge}" for each in earlier)


def _evaluations(store: Store, message: Message) -> tuple[list[Evaluation], list[Evaluation]]:
    """The evaluations of a message as it reads now, and of earlier versions of its text."""
    every, now = store.evaluations(message.conversation, message.id), text_hash(message.text)
    return [each for each in every if each.message_hash == now], [each for each in every if each.message_hash != now]


def _header(message: Message, source_format: str) -> Iterator[str]:
    aim = f" to {plain_name(own_name(message.target, message.conversation))}" if message.target else ""
    yield f"{message.id} in {message.conversation}, {turn_at(message.position)}"
    time = "no time" if message.time is None else message.time.isoformat()
    if source_format == LOCAL:
        time = time.removesuffix("+00:00").replace("T", " ")
    yield f"{plain_name(own_name(message.agent, message.conversation))}{aim}, {time}, {message.source_ref or ''}"
    yield from ("  | " + line for line in message.text.splitlines())


def _request_lines(verdict: SessionVerdict, message_id: str) -> Iterator[str]:
    """Why a request of the message is noted: what it is, its words, and what its speaker asks besides."""
    noted = [each for each in verdict.moments if each.message_id == message_id and each.code == REQUEST]
    for moment in noted:
        yield f"request: {moment.title}: “{one_line(moment.quotes[0].text, QUOTED)}”"
    if noted:
        yield f"  It is noted since such things are rare together. {noted[0].explanation}"
        yield "  The words were matched one by one (rules/session/requests.yaml); what they mean is for you to say."


def _scan_lines(scan: Scan, message: Message) -> Iterator[str]:
    counts = (counted(scan.total, "flag"), counted(len(scan.hits), "hit"), counted(scan.words, "word"))
    yield f"scan: {', '.join(counts)}"
    for hit in scan.hits:
        quote = " ".join(message.text[hit.start : hit.end].split())
        yield f"  {hit.trait}/{hit.label} at {hit.start}-{hit.end}: “{quote}”"
    for loop in scan.loops:
        yield f"  loop ({loop.scope}, {counted(loop.count, 'time')}): “{loop.ngram}”"
    if scan.deference:
        high = ", High Deference" if scan.deference.high else ""
        apologies = counted(scan.deference.apologies, "apology", "apologies")
        yield f"  {apologies} to {counted(scan.deference.corrections, 'correction')} so far{high}"
    for block in scan.code_blocks:
        path = f" {block.path}" if block.path else ""
        yield f"  code ({block.kind}{path}, {counted(block.lines, 'line')}) {block.sha256[:16]}…"


def _route_lines(route: Route) -> Iterator[str]:
    change = f"{route.tier_before} → {route.tier}" if route.tier != route.tier_before else route.tier
    yield f"route: {change} (depth {route.depth}, width {route.width})"
    yield from (f"  because of {reason}" for reason in route.reasons)


def _evaluation_lines(evaluation: Evaluation) -> Iterator[str]:
    why = f": {evaluation.reason}" if evaluation.reason else ""
    yield f"{evaluation.state} by {evaluation.judge} ({evaluation.judge_hash[:16]}…){why}"
    for trait, score in (evaluation.traits or {}).items():
        yield f"  {trait:<13} –     does not apply" if score is None else _bar(trait, score)


def _bar(trait: str, score: float) -> str:
    return f"  {trait:<13} {score:.3f} {'█' * round(score * 20)}"


def _stage_scores(store: Store, message: Message, rule: RuleWords, stage: str) -> Iterator[str]:
    now, earlier = _evaluations(store, message)
    for evaluation in now:
        scores = rule.scores(stage, evaluation.traits)
        for trait, score in scores.items():
            yield f"  {trait:<13} {'–    ' if score is None else f'{score:.3f}'} by {evaluation.judge}"
        yield from why_lines(evaluation, message, scores)
    yield from (f"  an earlier version of the text was scored by {each.judge}" for each in earlier)


def _finding_lines(store: Store, finding: Finding) -> Iterator[str]:
    from undersong.patterns.catalog import all_rules
    from undersong.report.finding_view import RuleWords, rule_words

    aim = f" towards {plain_name(finding.target)}" if finding.target else ""
    yield f"{finding.finding_id}"
    yield f"{finding.title}: {plain_name(finding.agent)}{aim}"
    strength = f"strength {finding.strength:.2f} of 1 (how clear-cut the shape is)"
    yield f"level {finding.level} (how grave it would be), {strength}"
    yield f"consistent with the rule {finding.pattern} ({finding.rule_hash[:16]}…); the reader makes the call"
    rule = rule_words(all_rules()).get(finding.rule_hash, RuleWords())
    if rule.description:
        yield rule.description
    yield from (f"innocent look-alike: {line}" for line in rule.innocent)
    stages = dict((message_id, variable) for variable, message_id in finding.stages)
    for name in finding.conversations:
        if store.length(name) is None:
            yield from _rows_alone(store, name, stages)
            continue
        conversation = store.conversation(name)[0]
        for message in conversation.messages:
            if message.id in stages:
                yield ""
                yield f"[{stages[message.id]}]"
                yield from _header(message, conversation.source_format)
                yield from _stage_scores(store, message, rule, stages[message.id])
    if finding.gap_ids or finding.unread_ids:
        yield ""
        yield f"passed over: {len(finding.gap_ids)} read, {len(finding.unread_ids)} unread messages"
    yield from (f"sure: {words}" for words in certainty_words(finding))
    yield from (f"outcome: {words}" for words in outcome_words(finding))
    yield from (f"note: {note}" for note in finding.notes)


def _rows_alone(store: Store, conversation: str, stages: dict[str, str]) -> Iterator[str]:
    """The messages of a finding over imported rows, whose texts the store never had."""
    for judge in store.judges():
        for row in store.thread(conversation, judge.judge_hash):
            if row.id in stages and row.traits:
                time = "no time" if row.time is None else row.time.isoformat()
                yield ""
                yield f"[{stages[row.id]}]"
                yield f"{row.id} by {row.agent}, {time}, without its text; scored by {judge.judge}"
                shown = ("–" if score is None else f"{score:.2f}" for score in row.traits.values())
                yield "  " + ", ".join(map(" ".join, zip(row.traits, shown, strict=True)))


QUOTED = 200  # characters of a quote or a reason
WORDS = 3  # told per trait


def why_lines(evaluation: Evaluation, message: Message, traits: Iterable[str]) -> Iterator[str]:
    """The kind of the text, the words that raised ``traits``, and the sentence of each signal that is .5 or more.

    Nothing for another judge, or where the artefacts of today are not those that gave the scores.
    """
    if evaluation.judge != "offline" or evaluation.state != "scored":
        return
    from undersong.judges.attribution import word_contributions
    from undersong.judges.offline import open_judge

    if evaluation.domain == "unmeasured":
        yield "  unlike the text that the judge was measured on: its trait scores give an order, no levels"
    judge = open_judge("")
    if judge.hash == evaluation.judge_hash:
        for trait in traits:
            moved = word_contributions(judge.heads_for(evaluation.domain), message.text, trait)
            raised = [f"“{each.words}” ({each.share:+.3f})" for each in moved if each.share > 0][:WORDS]
            if raised:
                yield f"  {trait} was raised by {', '.join(raised)}"
    for name, (start, end) in sorted(evaluation.spans.items(), key=lambda item: -evaluation.signals[item[0]]):
        quote = " ".join(message.text[start:end].split())
        yield f"  {name} {evaluation.signals[name]:.2f}: “{quote}”"
