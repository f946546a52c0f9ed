"""Sessions, findings and cited messages as lines of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from undersong.manifest import text_hash
from undersong.models import SessionVerdict
from undersong.report.cited import Cite, Excerpt
from undersong.report.findings import FindingView
from undersong.report.sessions import DeductionView, Event, MomentView, SessionView
from undersong.report.text import code, fenced, first_upper, label, moment, period, plain, sparkline
from undersong.report.view import ReportView
from undersong.wording import context_words, counted, gaps_words, mechanism_name, outcome_words, score_words

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
