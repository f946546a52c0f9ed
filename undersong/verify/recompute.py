"""The pure steps recomputed from the folder's own data: scan, verdict, detect, chance, counts, and the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from undersong.core.manifest import BESIDE, NAME, RUN, Manifest
from undersong.core.owned_folder import scratch_folder
from undersong.judges.measurement import mapped_traits, maps_of, panel_agreement
from undersong.models import Conversation, Finding, Message, Route, Row, Scan, SessionVerdict, ThreadScan
from undersong.patterns.detect import RowSearch, quote, strongest_sentences
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.lead_decisions import with_decisions
from undersong.patterns.lead_quotes import with_quotes
from undersong.patterns.nomination import UNREAD_SEQUENCES, unread_sequences
from undersong.patterns.outcome import with_outcome
from undersong.patterns.request_leads import all_leads
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance
from undersong.pipeline.case_builder import DOUBLE_CHECK, count, highest, judge_calls, spending, with_attribution
from undersong.pipeline.judged_findings import reading_facts, with_disagreement, with_readings
from undersong.pipeline.lead_kinds import with_kinds
from undersong.report.render import FORMATS, formats_of
from undersong.report.writer import CONVERSATIONS, DATA, EVALUATIONS, write
from undersong.rows.corpus_scales import null_bands_of, ranks_of, table_name
from undersong.scan import load_book, scan_conversation
from undersong.verdict import agent_verdicts, session_verdict
from undersong.verify.environment import OFFLINE, Model
from undersong.verify.manifest_check import Content, Discrepancy

TOLERANCE = 0.0015  # of a score by the offline judge: .001 and half of the last decimal that is written
SCANNED = ("flags", "total", "hard_constraints", "loops", "deference", "sentiment_score", "code_change_delta",
           "latency_drop")  # fmt: skip
ROUTED = ("tier", "tier_before", "width", "sampled", "reasons")
TRANSCRIPTS = (f"is in {CONVERSATIONS}", CONVERSATIONS)  # how a missing row and a difference name them
RANK_TOLERANCE = 0.05  # a score that moves by .001 can pass many others with the same score
AGREEMENT = "judge_agreement"  # among the parameters
AGAIN = "does not come out again"
RULE = "patterns/"  # what the hashes of rules are named by; their files end with .yaml


def recompute_findings(content: Content, rules: Sequence[PatternRule]) -> Iterator[Discrepancy]:
    """Patterns, chance, q, stability, quotes and outcomes from the rows of scores."""
    case, used = content.case, {outcome.pattern: outcome.rule_hash for outcome in content.case.outcomes}
    chosen = [rule for rule in rules if used.get(rule.id) == rule.hash]
    gives = case.parameters.get("judge_gives")
    search = RowSearch(content.rows)
    detection = search.detect(chosen, gives=None if gives is None else frozenset(gives))
    effort = _effort(case.parameters)
    findings: Iterable[Finding] = detection.findings
    if effort is not None:
        noise = case.parameters.get("judge_noise")
        findings = estimate_significance(detection.findings, detection.outcomes, search, chosen, effort, noise).findings
    findings = with_readings(tuple(findings), case.sequences, content.rows, rules, *reading_facts(case, content.rows))
    findings = with_disagreement(findings, content.rows, rules)
    messages = {(message.conversation, message.id): message for message in case.cited}
    strongest = strongest_sentences(row for row in content.rows if (row.conversation, row.id) in messages)
    transcripts = {conversation.id: conversation.messages for conversation in content.conversations}
    reported = {each.finding_id: each for each in case.findings}
    again = {
        each.finding_id: each
        if each.is_read
        else _with_reported_context(
            quote(each, messages, strongest=strongest), transcripts, reported.get(each.finding_id)
        )
        for each in findings
    }
    yield from _findings(case.findings, again)
    sought = {name.removeprefix(RULE) for name in case.hashes if name.startswith(RULE) and not name.endswith(".yaml")}
    for pattern in sorted(sought - used.keys()):
        yield Discrepancy(
            what="was looked for, and case.json does not hold what came of it", where=f"pattern {pattern}"
        )
    outcomes = {outcome.pattern: outcome for outcome in detection.outcomes}
    for outcome in case.outcomes:
        yield from _unlike(f"pattern {outcome.pattern}", "its outcome", outcome, outcomes.get(outcome.pattern))


def _with_reported_context(
    finding: Finding, transcripts: Mapping[str, Sequence[Message]], reported: Finding | None
) -> Finding:
    """The finding with its outcome from the transcripts; where the report lacks one of them, with the one it tells.

    What moved its scores is held against the texts by ``recompute_attribution``.
    """
    finding = msgspec.structs.replace(finding, why=reported.why if reported else None)
    if transcripts.keys() >= set(finding.conversations):
        return with_outcome(finding, (message for name in finding.conversations for message in transcripts[name]))
    return msgspec.structs.replace(finding, outcome=reported.outcome if reported else None)


def recompute_attribution(content: Content, rules: Sequence[PatternRule], model: Model | None) -> Iterator[Discrepancy]:
    """What moved the scores behind each finding, from the cited messages and the artefacts of the offline judge.

    Raises NotPossibleError where that judge is another one than the report's.
    """
    case = content.case
    if model is None or case.parameters.get("judge") != OFFLINE:
        yield from (_unexplained(each) for each in case.findings if each.why is not None)
        return
    heads = model.opened().artefacts.heads
    messages = {(message.conversation, message.id): message for message in case.cited}
    again = with_attribution(case.findings, content.rows, messages, rules, heads)
    for reported, other in zip(case.findings, again, strict=True):
        if reported.why != other.why:
            yield _unexplained(reported)


def _unexplained(finding: Finding) -> Discrepancy:
    where = f"finding {finding.finding_id[:12]} ({finding.pattern})"
    return Discrepancy(what=f"what moved its scores: {AGAIN} from the cited messages", where=where)


def _effort(parameters: Mapping[str, Any]) -> ResamplingConfig | None:
    values = {name: parameters.get(f"chance_{name}", 0) for name in ResamplingConfig.__struct_fields__}
    return ResamplingConfig(**values) if values["draws"] or values["replicas"] else None


def _findings(reported: Sequence[Finding], again: Mapping[str, Finding]) -> Iterator[Discrepancy]:
    for finding in reported:
        where = f"finding {finding.finding_id[:12]} ({finding.pattern})"
        other = again.get(finding.finding_id)
        if other is None:
            yield Discrepancy(what=f"{AGAIN} from evaluations.jsonl", where=where)
            continue
        names = _differing(finding, other, finding.__struct_fields__)
        if names:
            yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from evaluations.jsonl", where=where)
    reported_ids = {finding.finding_id for finding in reported}
    for finding_id in sorted(again.keys() - reported_ids):
        where = f"finding {finding_id[:12]} ({again[finding_id].pattern})"
        yield Discrepancy(what="comes out of evaluations.jsonl, and findings.jsonl does not hold it", where=where)


def recompute_leads(content: Content) -> Iterator[Discrepancy]:
    """The leads from the rows and the findings, their quotes from the cited messages."""
    case = content.case
    messages = {(message.conversation, message.id): message for message in case.cited}
    texts = {place: message.text for place, message in messages.items()}
    leads = with_decisions(all_leads(content.rows, case.findings, case.signals, case.sessions), case.reviews, texts)
    transcripts = {conversation.id: conversation for conversation in content.conversations}
    again = with_kinds(with_quotes(leads, content.rows, messages), transcripts.get)
    reported = {each.id: each.kinds for each in case.leads if each.conversation not in transcripts}
    # what is in a conversation that the report does not hold whole: its quotes are checked with all others
    again = tuple(msgspec.structs.replace(each, kinds=reported.get(each.id, each.kinds)) for each in again)
    others = {each.id: each for each in again}
    for lead in case.leads:
        if lead != others.pop(lead.id, None):
            yield Discrepancy(what=f"{AGAIN} from evaluations.jsonl", where=f"lead {lead.rank} ({lead.agent})")
    for lead in others.values():
        what = "comes out of evaluations.jsonl, and leads.jsonl does not hold it"
        yield Discrepancy(what=what, where=f"lead {lead.rank} ({lead.agent})")
    if [lead.rank for lead in case.leads] != sorted(lead.rank for lead in case.leads):
        yield Discrepancy(what="is not in the order of the ranks", where="leads.jsonl")


def recompute_counts(content: Content, manifest: Manifest) -> Iterator[Discrepancy]:
    """The averages of the agents, the counts over all rows, and what case.json says twice."""
    case, rows = content.case, content.rows
    signals = null_bands_of(rows, case.parameters.get("judge_gives") or ())
    band_tables = {None, table_name(signals)}
    spoken = {row.conversation for row in rows}
    again_spent = spending(rows, case.sessions, case.sequences)
    if case.spent is not None and DOUBLE_CHECK in case.spent.tiers:  # second readings stand in no row
        again_spent = case.spent
    facts = {
        "conversations": (case.conversations, len(spoken)),
        "sessions": (sorted(session.conversation for session in case.sessions), sorted(spoken)),
        "judge calls": (case.judge_calls, judge_calls(rows, case.sessions)),
        "spent": (case.spent, again_spent),
        "cost": (case.cost, (case.spent.total.cost or 0.0) if case.spent else 0.0),
        "signals": (case.signals, signals),
        "bands": (case.bands, table_name(signals)),
        "rows with other bands": (0, sum(row.bands not in band_tables for row in rows)),
        "messages": (case.messages, len(rows)),
        "tiers": (case.tiers, count(row.tier or "standard" for row in rows)),
        "states": (case.states, count(row.state for row in rows)),
        "highest": (case.highest, highest(rows)),
        "ranked": (case.ranked, sum(row.scale == "rank" for row in rows)),
        "agents": (case.agents, agent_verdicts(rows, case.sessions, case.findings)),
        "agreement of the judges": (case.parameters.get(AGREEMENT), panel_agreement(rows).get(AGREEMENT)),
        "sequences that nobody read": (
            case.parameters.get(UNREAD_SEQUENCES),
            unread_sequences(rows, case.sequences) if case.sequences else None,
        ),
        "rows whose scores do not follow from the maps": (0, _not_mapped(rows, case.parameters)),
        "read": (_reads_sequences(case.parameters), _reads_sequences(case.parameters) or bool(case.sequences)),
        "judge's hash": (set(), _other_hashes(rows, case.parameters)),
        "inputs": (case.inputs, manifest.inputs),
        "parameters": (case.parameters, manifest.parameters),
        "hashes": (case.hashes, manifest.hashes),
    }
    for name, (reported, again) in facts.items():
        yield from _unlike("case.json", name, reported, again)


def _reads_sequences(parameters: Mapping[str, Any]) -> bool:
    return bool(parameters.get("read", "messages") != "messages")


def _other_hashes(rows: Iterable[Row], parameters: Mapping[str, Any]) -> set[str | None]:
    """The hashes under which rows name the report's judge, other than that of the report."""
    name, own = parameters.get("judge"), parameters.get("judge_hash")
    return {row.judge_hash for row in rows if row.judge == name and row.judge_hash != own}


def _not_mapped(rows: Iterable[Row], parameters: Mapping[str, Any]) -> int:
    """How many read rows do not have the judge's own scores, sent through the maps of the report."""
    maps = maps_of(parameters)
    readings = (
        (row.traits, row.reading.unmapped) for row in rows if row.traits is not None and row.reading is not None
    )
    return sum(
        (own is not None) != bool(maps) or (own is not None and mapped_traits(own, maps) != traits)
        for traits, own in readings
    )


def recompute_scans(content: Content) -> Iterator[Discrepancy]:
    """The free signals and the sovereignty score of each transcript."""
    verdicts = {session.conversation: session for session in content.case.sessions}
    rows = {(row.conversation, row.id): row for row in content.rows}
    for conversation in content.conversations:
        scans, thread = scan_conversation(conversation, load_book())
        yield from compare_conversation(conversation, scans, thread, rows, verdicts.get(conversation.id), TRANSCRIPTS)


def compare_conversation(
    conversation: Conversation,
    scans: Sequence[Scan],
    thread: ThreadScan,
    rows: Mapping[tuple[str, str], Row],
    reported: SessionVerdict | None,
    source: tuple[str, str],
    routes: Sequence[Route] | None = None,
) -> Iterator[Discrepancy]:
    """The rows and the verdict of a conversation beside its scans, its routes (if any) and the verdict that follows.

    ``source`` names where the conversation comes from, as a missing row and as a difference say it.
    """
    held_in, name = source
    judged = []  # the rows as the verdict saw them: with texts and hits, and with the scores of the report
    for number, (message, scan) in enumerate(zip(conversation.messages, scans, strict=True)):
        row = rows.get((conversation.id, message.id))
        if row is None:
            yield Discrepancy(what=f"{held_in} and not in {EVALUATIONS}", where=message.id)
            continue
        names = _differing(row, scan, SCANNED) + (_differing(row, routes[number], ROUTED) if routes else [])
        if names:
            yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from {name}", where=row.id)
        judged.append(msgspec.structs.replace(row, text=message.text, hits=scan.hits))
    confirmations, profile = (reported.confirmations, reported.profile) if reported else ((), None)
    again = session_verdict(conversation, scans, thread, judged, confirmations, profile)
    compared = [name for name in again.__struct_fields__ if name != "project"]  # a file may be checked elsewhere
    names = _differing(reported, again, compared)
    if names:
        yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from {name}", where=f"session {conversation.id}")


def _differing(one: object, other: object, names: Sequence[str]) -> list[str]:
    return [name for name in names if getattr(one, name, None) != getattr(other, name)]


def recompute_offline_scores(content: Content, model: Model | None) -> Iterator[Discrepancy]:
    """The scores of the offline judge, within .001, where the report holds the text.

    Raises NotPossibleError where that judge is another one than the report's.
    """
    from undersong.judges.protocol import Question

    wanted = {(row.conversation, row.id): row for row in content.rows if row.judge == OFFLINE and row.state == "scored"}
    if model is None or not wanted:
        return
    judge = model.opened()
    for row in wanted.values():
        if row.judge_hash != judge.hash:
            yield Discrepancy(what="was scored by another offline model than the report names", where=row.id)
    messages = [
        message
        for conversation in content.conversations
        for message in conversation.messages
        if (message.conversation, message.id) in wanted
    ]
    route = Route(message_id="", tier="standard", tier_before="standard", depth="skip", width="message")
    asked = [Question(message=each, scan=Scan(message_id=each.id), route=route) for each in messages]
    answers = judge.evaluate(asked)
    pairs = [(wanted[each.conversation, each.id], answer) for each, answer in zip(messages, answers, strict=True)]
    again = [msgspec.structs.replace(row, traits=answer.traits) for row, answer in pairs]
    whole = sum(row.scale == "rank" for row in again) == content.case.ranked  # else the ranks are of other rows
    ranks = ranks_of(again)
    for message, (reported, _), now in zip(messages, pairs, again, strict=True):
        if (whole or reported.scale != "rank") and _far(reported, ranks.of(now)):
            yield Discrepancy(what=f"its scores by judge {OFFLINE}: {AGAIN} within .001", where=message.id)


def _far(row: Row, now: Row) -> bool:
    reported, again = row.traits or {}, now.traits or {}
    close = RANK_TOLERANCE if row.scale == "rank" else TOLERANCE
    return reported.keys() != again.keys() or any(_apart(reported[name], again[name], close) for name in reported)


def _apart(one: float | None, other: float | None, tolerance: float) -> bool:
    return one is not other if one is None or other is None else abs(one - other) > tolerance


def recompute_files(report_dir: Path, content: Content, rules: Sequence[PatternRule]) -> Iterator[Discrepancy]:
    """Every page, picture and table from the data beside it, byte for byte."""
    present = {path.name for path in report_dir.iterdir()}
    tables = {NAME, *FORMATS["parquet"]} & present if FORMATS["parquet"][0] in present else set[str]()
    formats = [each for each in formats_of(present) if each != "parquet"]  # another pyarrow writes other bytes
    transcripts = {conversation.id: conversation for conversation in content.conversations}
    with scratch_folder() as folder:
        again = folder / "report"
        write(content.case, content.rows, again, rules=rules, conversations=transcripts.get, formats=formats)
        made = {path.name for path in again.iterdir()}
        for file_name in sorted((made | present) - {RUN, *BESIDE, *DATA, *tables}):
            one, two = report_dir / file_name, again / file_name
            if not (one.is_file() and two.is_file() and one.read_bytes() == two.read_bytes()):
                yield Discrepancy(what=f"{AGAIN} from case.json, findings.jsonl and the rows", where=file_name)


def _unlike(where: str, name: str, reported: object, again: object) -> Iterator[Discrepancy]:
    if reported != again:
        yield Discrepancy(what=f"{name}: {AGAIN}", where=where)
