"""The same report as Markdown in which foreign text stays text; the picture is a sibling file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from undersong.core.hashing import text_hash
from undersong.core.text import counted, mechanism_name
from undersong.models import SessionVerdict
from undersong.report.citations import Cite, Excerpt
from undersong.report.escape import code, fenced, first_upper, label, moment, period, plain, sparkline
from undersong.report.finding_view import FindingView
from undersong.report.narrative import (
    alignment_words,
    context_words,
    gaps_words,
    outcome_words,
    score_words,
    to_read_words,
)
from undersong.report.session_view import DeductionView, Event, MomentView, SessionView
from undersong.report.view_model import ReportView

OPTION = 300  # characters of --judge, which may name a model for each tier


def render(shown: ReportView) -> str:
    """``forensic_audit_report.md``: names in code spans, quotes in fences that they cannot close."""
    sections = (
        _header, _verdict, _guns, _sessions, _findings, _agents, _reading, _missing, _methods, _reproduce, _glossary,
        appendix, _hashes,
    )  # fmt: skip
    return "\n".join(line for section in sections for line in section(shown)) + "\n"


def _header(v: ReportView) -> Iterator[str]:
    case = v.case
    yield "# Forensic audit report"
    yield ""
    yield f"undersong {plain(case.version)} · {counted(case.conversations, 'conversation')} · " + (
        f"{counted(case.messages, 'message')} · {period(v.tally.first, v.tally.last)}"
    )
    yield ""
    if len(case.sessions) == 1 and v.sessions:
        session = v.sessions[0]
        speakers = ", ".join(f"{code(name, 50)} ({count})" for name, count in session.trace.speakers.most_common(12))
        title = f"“{plain(label(session.verdict.title))}” " if session.verdict.title else ""
        yield f"- session {title}{code(session.verdict.conversation)}"
        yield f"- context: {plain(context_words(session.verdict))}"
        yield f"- who spoke: {speakers or 'not known'}"
    for input_file in case.inputs[:20]:
        yield f"- input {code(input_file.name)}, sha256 `{input_file.sha256}`"
    if len(case.inputs) > 20:
        yield f"- and {len(case.inputs) - 20} more inputs, in manifest.json"
    yield ""


def _verdict(v: ReportView) -> Iterator[str]:
    yield "## Verdict"
    yield ""
    for sentence in (*v.headline, v.coverage, *filter(None, [v.redacted])):
        yield from (plain(sentence), "")
    yield from (f"*{v.words.caution}*", "", "![Turn by turn](risk_graph.svg)", "")
    yield "### Mechanisms of the sovereignty score"
    yield ""
    rows = [
        (each.name, each.assessed, each.not_assessed, each.not_applicable, plain("; ".join(each.reasons)) or "–")
        for each in v.gaps
    ]
    yield from table(("mechanism", "assessed in", "not assessed in", "not applicable in", "why not"), rows)


def _guns(v: ReportView) -> Iterator[str]:
    if not v.guns:
        return
    rest = (
        f" The first {len(v.guns)} of {v.all_guns} are told; case.json holds all." if v.all_guns > len(v.guns) else ""
    )
    yield from ("## Smoking guns", "", v.words.guns + rest, "")
    for gun in v.guns:
        yield from gun_lines(gun)


def _sessions(v: ReportView) -> Iterator[str]:
    yield from ("## Sessions", "", "The worst first.", "")
    rows = []
    for verdict, anchor, findings in v.listed:
        name = code(verdict.conversation, 80)
        assessed = sum(mechanism.assessment == "assessed" for mechanism in verdict.mechanisms)
        rows.append(
            (
                (f"{plain(label(verdict.title, 80))} " if verdict.title else "")
                + (f"[{name}](#{anchor})" if anchor else name),
                "none" if verdict.score is None else verdict.score,
                f"{assessed} of {len(verdict.mechanisms)}",
                findings,
                f"{verdict.read} of {verdict.messages}",
                to_read_words((verdict,)) or "–",
                plain(", ".join(verdict.flags)) or "–",
            )
        )
    yield from table(("session", "score", "assessed", "findings", "read", "to be read", "flags"), rows)
    if len(v.listed) < len(v.case.sessions):
        yield from (f"The first {len(v.listed)} of {len(v.case.sessions)}; case.json holds all.", "")
    yield from _months(v)
    for session in v.sessions:
        yield from session_lines(session)


def _months(v: ReportView) -> Iterator[str]:
    if not v.months:
        return
    yield from ("### Month by month", "")
    yield from (f"Lowest score of each month: `{sparkline([m.lowest for m in v.months if m.lowest is not None])}`", "")
    head = (
        "month",
        "sessions",
        "messages",
        "with a score",
        "lowest",
        "mean",
        "points taken",
        "findings",
        "smoking guns",
    )
    rows = [
        (m.name, m.sessions, m.messages, m.scored, "–" if m.lowest is None else m.lowest,
         "–" if m.mean is None else m.mean, m.deductions, m.findings, m.moments.get("smoking_gun", 0))
        for m in v.months
    ]  # fmt: skip
    yield from table(head, rows)


def _findings(v: ReportView) -> Iterator[str]:
    yield from ("## Findings", "")
    if v.grouped:
        yield from (v.words.reading_guide, "")
        if v.basis:
            yield from (first_upper(plain("; ".join(v.basis))) + ".", "")
    for title, findings, taken in v.grouped:
        yield from (f"### {title}", "")
        for session, deduction_view in taken:
            again = f", and {counted(len(deduction_view.repeats), 'more time')}" if deduction_view.repeats else ""
            name = plain(first_upper(mechanism_name(deduction_view.deduction.mechanism)))
            where = code(session.verdict.title or session.verdict.conversation, 60)
            deducted = f"−{deduction_view.deduction.points} {name}"
            yield f"- {deducted}, [{where}](#{session.anchor}), turn {deduction_view.deduction.position}{again}"
        yield ""
        for finding in findings:
            yield from finding_lines(finding)
    if not v.findings:
        yield from (plain(v.searched) + " That is not proof of absence: see what was read, and what is missing.", "")
    if len(v.findings) < len(v.case.findings):
        yield from (
            f"The first {len(v.findings)} of {len(v.case.findings)} are told in full; findings.jsonl holds all.",
            "",
        )
    rows = [
        (
            code(each.pattern),
            each.status.replace("_", " "),
            "–" if each.status == "not_applicable" else each.partitions,
            each.findings if each.status == "ran" else "–",
            plain(each.reason) or "–",
        )
        for each in v.case.outcomes
    ]
    yield from ("### Patterns", "")
    yield from table(("pattern", "status", "sequences searched", "findings", "why not"), rows)


def _agents(v: ReportView) -> Iterator[str]:
    yield from ("## Agents", "")
    rows = []
    for agent in v.agents:
        dimensions, values = agent.dimensions or {}, agent.values or {}
        scores = [f"{dimensions[name]:.2f}" if name in dimensions else "–" for name in ("ethos", "logos", "pathos")]
        safety = f"{values['safety']:.2f}" if "safety" in values else "–"
        read = f"{agent.read} of {agent.messages}"
        rows.append(
            (
                code(agent.agent, 80),
                alignment_words(agent),
                *scores,
                agent.balance,
                safety,
                read,
                agent.flagged,
                agent.hard_constraint_words,
            )
        )
    head = (
        "agent",
        "alignment",
        "ethos",
        "logos",
        "pathos",
        "balance",
        "safety",
        "with levels",
        "flagged",
        "constraint words",
    )
    yield from table(head, rows)
    if len(v.agents) < len(v.case.agents):
        yield from (f"The first {len(v.agents)} of {len(v.case.agents)}; case.json holds all.", "")
    yield from _words_only(v)


def _words_only(v: ReportView) -> Iterator[str]:
    if not v.words_only:
        return
    listed, total = len(v.words_only), v.tally.with_words
    rest = f" The first {listed} are listed; evaluations.jsonl holds all." if total > listed else ""
    yield from ("### Words of hard constraints", "")
    yield (
        f"Words only: {counted(total, 'message')} in which such words stand. Warning of a thing, or asking about it, "
        f"uses the same words; read them.{rest}"
    )
    yield ""
    rows = [
        (
            code(each.agent, 60),
            plain(", ".join(each.constraints)),
            code(each.conversation, 60),
            f"[{each.position}](#{cite.anchor})" if cite.anchor else each.position,
            code(str(each.source_ref), 120) if each.source_ref else "not known",
        )
        for each, cite in v.words_only
    ]
    yield from table(("agent", "words only", "session", "turn", "source"), rows)


def _reading(v: ReportView) -> Iterator[str]:
    case = v.case
    yield from ("## What was read, and how", "")
    yield f"{counted(v.tally.rows, 'message')} scanned. {v.upgraded}"
    yield (
        f"{counted(case.judge_calls, 'answer')} of the judge, kept ones included, cost {v.cost}. "
        f"{counted(v.tally.sampled, 'unflagged message')} in the audit sample."
    )
    yield ""
    yield from (f"{plain(sentence)}\n" for sentence in v.judged)
    if (agreed := v.agreement) is not None:
        yield from table(agreed.head, agreed.rows)
    yield from (f"{sentence}\n" for sentence in v.missed)
    rows = [(plain(tier.replace("_", " ")), before, after) for tier, before, after in v.tiers]
    yield from table(("tier", "before routing", "after routing"), rows)
    for agent, count in v.upgrades[:20]:
        yield f"- raised by thread signals: {code(agent, 80)}, {counted(count, 'message')}"
    yield ""


def _missing(v: ReportView) -> Iterator[str]:
    yield from ("## What is missing", "", "### Messages without scores", "")
    rows = [(state, count, plain(reason)) for (state, reason), count in v.tally.reasons.most_common()]
    yield from table(("state", "messages", "reason"), rows, empty="None: every message was scored.")
    yield from ("### Not looked for at all", "")
    yield from (f"- **{each.title}.** {plain(each.text)}" for each in v.words.missing)
    yield from ("", "### Problems with the input", "")
    for problem in v.case.problems[:200]:
        remedy = f"; {code(problem.remedy, 200)}" if problem.remedy else ""
        yield f"- {problem.kind}: {code(problem.where, 200)}: {code(problem.what, 300)}{remedy}"
    if not v.case.problems:
        yield "None: every record could be read."
    elif len(v.case.problems) > 200:
        yield f"- the first 200 of {len(v.case.problems)}; case.json holds all"
    yield ""


def _methods(v: ReportView) -> Iterator[str]:
    yield from ("## Methods and limits", "")
    yield from (f"- **{each.title}.** {plain(each.text)}" for each in v.words.methods)
    yield ""
    yield from (f"- {plain(each)}" for each in v.words.limits)
    yield ""


def _reproduce(v: ReportView) -> Iterator[str]:
    yield from ("## How to reproduce", "")
    for line in v.words.reproduce:
        yield from (plain(line), "")
    inputs = " ".join(label(each.name, 80) for each in v.case.inputs[:3]) + (" …" if len(v.case.inputs) > 3 else "")
    judge, seed = label(v.judge_option, OPTION), label(str(v.case.parameters.get("seed", "")), 60)
    yield f"- check this folder: {code(f'undersong verify DIR {inputs} --digest HEX', 400)}"
    yield f"- make it again: {code(f'undersong audit {inputs} --judge {judge} --seed {seed}', 400 + OPTION)}"
    yield ""


def _glossary(v: ReportView) -> Iterator[str]:
    yield from ("## Glossary", "")
    yield from (f"- **{each.term}.** {plain(each.text)}" for each in v.words.glossary)
    yield ""


def _hashes(v: ReportView) -> Iterator[str]:
    yield from ("## Hashes", "", "manifest.json holds them with those of the report's own files.", "")
    rows = [(code(name), f"`{value}`") for name, value in sorted(v.case.hashes.items())]
    yield from table(("rule, prompt or model", "sha256"), rows, empty="No rule, prompt or model is named.")
    rows = [(code(name), code(str(value), 300)) for name, value in sorted(v.case.parameters.items())]
    yield from table(("parameter", "value"), rows, empty="No parameter is named.")


WHY = 600  # characters of what moved a score


def table(head: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "None.") -> Iterator[str]:
    """A table, or the words for an empty one; cells are safe already."""
    lines = [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    if not lines:
        yield from (empty, "")
        return
    yield from (f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *lines, "")


def session_lines(session: SessionView) -> Iterator[str]:
    """One session in detail."""
    verdict, trace = session.verdict, session.trace
    speakers = ", ".join(f"{code(name, 50)} ({count})" for name, count in trace.speakers.most_common(8))
    yield from (f'<a id="{session.anchor}"></a>', "", f"### Session {_session_name(verdict)}", "")
    yield f"- {period(trace.first, trace.last)}; who spoke: {speakers or 'not known'}"
    yield f"- **{first_upper(plain(score_words(verdict)))}**"
    yield f"- {first_upper(plain(session.coverage))}"
    yield from (f"- {plain(sentence)}" for sentence in session.summary)
    yield f"- context: {plain(context_words(verdict))}"
    yield f"- flags: {plain(', '.join(verdict.flags)) or 'none'}"
    yield from (f"  - {plain(line)}" for line in session.evidence)
    yield from (f"- {first_upper(plain(line))}" for line in gaps_words(verdict))
    yield ""
    if verdict.turns:
        yield from (f"Score, turn by turn: `{sparkline([score for _, score in verdict.turns])}`", "")
    rows = [_event(each) for each in session.events[:500]]
    yield from table(("turn", "what stands there", "score after it"), rows, empty="Nothing stands at any single turn.")
    for deduction in session.deductions:
        yield from _deduction_lines(deduction)
    yield from _moments_of(session, "distress", "Clinical map")
    yield from _moments_of(session, "protective", "Protective moments")
    yield from _moments_of(session, "conduct", "Noted turns")
    yield from _moments_of(session, "candidate", "Candidates")


def _moments_of(session: SessionView, kind: str, title: str) -> Iterator[str]:
    moment_views = session.of_kind(kind)
    if not moment_views:
        return
    yield from (f"#### {title}", "")
    for moment_view in moment_views:
        yield f"- **{plain(moment_view.label)}** {_speaker(moment_view.cite)}: {plain(moment_view.moment.explanation)}"
    yield ""


def gun_lines(gun: MomentView) -> Iterator[str]:
    """One smoking gun, verbatim, with its place and hash."""
    yield from (f"**{plain(gun.label)}** · {_speaker(gun.cite)} · [session](#{gun.session})", "")
    yield from (plain(gun.moment.explanation), "")
    yield from _excerpt_lines(gun.excerpt)
    if gun.excerpt and gun.moment.quotes:
        quote = gun.moment.quotes[0]
        yield from (f"- characters {quote.start} to {quote.end} of the message, sha256 `{quote.sha256}`", "")


def _session_name(verdict: SessionVerdict) -> str:
    title = f"“{plain(label(verdict.title))}” " if verdict.title else ""
    return f"{title}{code(verdict.conversation)}"


def finding_lines(view: FindingView) -> Iterator[str]:
    """One finding, stage by stage."""
    finding = view.finding
    target = code(finding.target, 80) if finding.target else "everybody (public messages)"
    yield from (f'<a id="{view.anchor}"></a>', "", f"### {finding.level}: {plain(finding.title)}", "")
    yield f"{code(finding.agent, 80)} towards {target}, {period(finding.start, finding.end)}."
    yield (
        f"The order of these {counted(len(finding.message_ids), 'message')} is consistent with {plain(finding.title)}. "
        f"Strength {finding.strength:.2f} of 1; {plain(view.certainty)}."
    )
    yield ""
    if view.rule.description:
        yield from (f"The rule: {plain(view.rule.description)}", "")
    if view.rule.innocent:
        yield from ("Innocent look-alikes to rule out first:", "")
        yield from (*(f"- {plain(line)}" for line in view.rule.innocent), "")
    for stage in view.stages:
        name = f"**{plain(stage.name)}** · " if stage.name else ""
        yield from (f"{name}{_speaker(stage.cite)}", "")
        if stage.scores:
            score_text = ", ".join(f"{name.replace('_', ' ')} {score:.2f}" for name, score in stage.scores.items())
            yield from (f"scores: {score_text}", "")
        if stage.why:
            yield from (*(f"- {plain(label(line, WHY))}" for line in stage.why), "")
        yield from _excerpt_lines(stage.excerpt)
    if view.gaps:
        shown = ", ".join(_link(cite) for cite in view.gaps[:8]) + (", …" if len(view.gaps) > 8 else "")
        yield f"- {counted(len(view.gaps), 'read message')} passed over: {shown}"
    if finding.unread_ids:
        yield f"- {counted(len(finding.unread_ids), 'message')} between them not read by a judge"
    yield from (f"- outcome: {plain(words)}" for words in outcome_words(finding))
    yield from (f"- note: {plain(note)}" for note in finding.notes)
    yield f"- finding {code(finding.finding_id)}, rule {code(finding.pattern)}, rule hash {code(finding.rule_hash)}"
    yield ""


def appendix(v: ReportView) -> Iterator[str]:
    """Every cited message in full, each with its anchor."""
    yield from ("## Cited messages", "")
    yield from ("Every message that this report quotes, in full. Control characters are written as ⟦U+…⟧.", "")
    for message, anchor, pieces, longer in v.appendix:
        yield from (f'<a id="{anchor}"></a>', "")
        yield f"{code(message.author or message.agent, 60)}, turn {message.position}, {moment(message.time)}"
        yield from ("", fenced("".join(piece.text for piece in pieces)), "")
        if longer:
            yield f"- {counted(len(message.text), 'character')}; the rest is in case.json"
        source = code(str(message.source_ref), 200) if message.source_ref else "not known"
        yield f"- message {code(message.id)} of session {code(message.conversation)}, source {source}"
        yield from (f"- sha256 `{text_hash(message.text)}`", "")


def _deduction_lines(view: DeductionView) -> Iterator[str]:
    deduction = view.deduction
    yield f"**−{deduction.points} {plain(mechanism_name(deduction.mechanism))}** · {_speaker(view.cite)}"
    yield from ("", plain(deduction.explanation), "")
    for excerpt in view.excerpts:
        yield from (_speaker(excerpt.cite), "")
        yield from _excerpt_lines(excerpt)
    if view.again:
        yield from (f"{plain(view.again)} Read: {', '.join(_link(cite) for cite in view.linked)}.", "")


def _event(event: Event) -> tuple[object, ...]:
    turn = _link(event.cite, event.place) if event.cite else event.place
    return turn, plain("; ".join(event.what)), "no score" if event.score is None else event.score


def _speaker(cite: Cite) -> str:
    message = cite.message
    if message is None:
        return _link(cite)
    return f"{code(message.author or message.agent, 60)}, {moment(message.time)}, {_link(cite)}"


def _link(cite: Cite, text: str = "") -> str:
    if cite.message is None:
        return f"{code(cite.id)} (not held in this report)"
    return f"[{text or f'turn {cite.message.position}'}](#{cite.anchor})"


def _excerpt_lines(excerpt: Excerpt | None) -> Iterator[str]:
    if excerpt is None:
        yield from ("The text of this message is not held in this report.", "")
        return
    yield fenced(excerpt.text)
    cuts = [words for cut, words in ((excerpt.cut_before, "starts"), (excerpt.cut_after, "goes on")) if cut]
    if cuts:
        yield f"*(the message {' earlier and '.join(cuts)}{' earlier' if cuts == ['starts'] else ''})*"
    yield ""
