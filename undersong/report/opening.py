"""The first screen of a report: at most five things to look at, each in a sentence with its strongest quote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted, turns_listed
from undersong.models import Case, Deduction, Finding, Lead, LedgerClaim, Moment, Quote, SessionVerdict
from undersong.models.lead import stretches
from undersong.models.verdict import ADMISSION, AGAINST, AGENT_ORDERS, SPREADS
from undersong.patterns.leads import places_of, shown_leads
from undersong.report.alignment_words import confirmed_violations, constraint_name
from undersong.report.claims_view import CHECKED, is_work
from undersong.report.decision_words import point_decisions
from undersong.report.display_names import display_names, with_reasons
from undersong.report.distinct_titles import with_distinct_titles
from undersong.report.message_times import MessageTimes
from undersong.report.opening_choice import (
    SHOWN,
    DatedLine,
    Point,
    State,
    chosen_points,
    places_with_findings,
    spread,
)
from undersong.report.opening_kinds import kinds_of_leads, with_kinds_of
from undersong.report.opening_orders import agent_orders, model_orders
from undersong.report.opening_phrases import (
    OF_CODE,
    at_turn,
    days_words,
    home_title,
    homes_words,
    in_title,
    name_of,
    naming,
    sentence_start,
    session_name,
    shown_words,
    times_words,
    whole,
)
from undersong.report.opening_requests import requests_together
from undersong.report.opening_sentences import sentences
from undersong.report.opening_turns import heaviest_first, labelled, turn_sentence
from undersong.report.opening_work import UNSEEN, against_work, bypass_points, claim_points, failure_points, is_pasted
from undersong.report.order import is_faint, order_findings, order_sessions
from undersong.report.sureness import is_unmeasured_reading, lead_words, sure_words

SURE = 0.8  # confidence from which on a finding counts as sure
WHOLE = 1000  # characters of a message in which somebody admits something
SUPPORT = 3  # messages without which a sequence is no more than a finding: two can be a question and its answer
LEADS = 3  # leads among them: they are guesses
LINES = 3  # sentences of a lead: an early one, one in between, a late one
_TEST_FAILED = re.compile(r"--- FAIL|\bFAILED\b|AssertionError|\b\d+ (?:tests? )?failed\b|✗|✕")
_SUPPOSED = re.compile(
    r"(?i)\b(?:(?:think|thinks|thought|say|says|believe|feel|worry|afraid|suggest)(?: that)?"
    r"|in case|if|unless)\s*$"
)
WORDS = 5  # of a quote that says something by itself


def points_of(case: Case) -> tuple[Point, ...]:
    """What to look at, the surest and gravest first, at most SHOWN."""
    names = display_names(case.cited)
    case = with_distinct_titles(msgspec.structs.replace(case, leads=with_reasons(case.leads, names)))
    with naming(names):
        return _points_of(case)


def _points_of(case: Case) -> tuple[Point, ...]:
    cited, times = {(message.conversation, message.id): message for message in case.cited}, MessageTimes(case)
    kinds = kinds_of_leads(case, times)

    def dated(line: DatedLine, home: str) -> DatedLine:
        message = cited.get((home, line.message_id))
        if message is None:
            return msgspec.structs.replace(line, quote=whole(line.quote, None))
        quote = line.quote if of_calls else whole(line.quote, message.text)
        return msgspec.structs.replace(line, quote=quote, when=times.of(message))

    points = []
    for point in chosen_points(_sources(case), by_gravity=is_work(case)):
        of_calls = point.kind == "bypass"  # whose lines stand in what was called, not in the text
        own = dated(DatedLine(point.message_id, point.speaker, point.quote), point.conversation)
        lines = tuple(dated(line, point.conversation) for line in point.lines)
        decided = point_decisions(case, point)
        quote = point.quote if point.sure == sentences().how_sure[ADMISSION] else own.quote  # a confession is whole
        point = msgspec.structs.replace(point, quote=quote, when=own.when, lines=lines, decided=decided)
        points.append(with_kinds_of(point, kinds.get(point.lead_id, ())))
    return tuple(points)


def every_point(case: Case) -> tuple[Point, ...]:
    """All that there is to look at, each message once for each kind."""
    points = (point for source in _sources(case) for point in source)
    return tuple({(point.kind, point.conversation, point.message_id): point for point in points}.values())


def _sources(case: Case) -> list[list[Point]]:
    """What there is to look at, kind by kind, the surest and gravest first."""
    sources: tuple[Iterable[Point], ...] = (
        _violations(case),
        _findings(case, sure=True),
        _deductions(case, sure=True),
        agent_orders(case, AGENT_ORDERS),
        model_orders(case),
        _requests(case),
        *against_work(case),
        agent_orders(case, SPREADS),
        *_hints(case),
    )
    return [list(source) for source in sources]


def _hints(case: Case) -> tuple[Iterable[Point], ...]:
    """What is no more than a hint: of work what nobody checked and what failed again, else speakers and sequences."""
    likely = (
        finding_point(each, case) for each in order_findings(case.findings) if each.is_lead and not is_faint(each)
    )
    work = (claim_points(case, ("unsupported",)), bypass_points(case, (UNSEEN,)), failure_points(case))
    if all(session.profile == "coding" for session in case.sessions):
        return *work, likely, _deductions(case, sure=False), _moments(case)
    other, of_companions = _leads(case)
    moments = list(_moments(case))
    owned = [point for point in moments if point.sure == sentences().how_sure[ADMISSION]]  # an apology comes last
    turns = ([point for point in moments if point not in owned], list(_turns(case)), of_companions)
    return _deductions(case, sure=False), likely, other, *turns, *work, owned


def more_words(case: Case, shown: Sequence[Point], every: Sequence[Point]) -> str:
    """``7 more findings and 13 more leads``: what there is beside ``shown``; "" where that is all.

    ``every`` is what ``every_point`` gives. Of leads only unsure deductions and claims that nobody checked count.
    """
    named = sum(point.state != "lead" for point in shown)
    findings = max(places_with_findings(every) - named, 0) if len(shown) >= SHOWN else 0
    hints = chain(_deductions(case, sure=False), claim_points(case, ("unsupported",)))
    taken = {point.id for point in shown} | {point.id for point in every if point.state != "lead"}
    leads = len({point.id for point in hints} - taken)
    parts = (counted(findings, "more finding") if findings else "", counted(leads, "more lead") if leads else "")
    return " and ".join(part for part in parts if part)


def _violations(case: Case) -> Iterator[Point]:
    """Messages in which a judge confirmed a hard constraint."""
    authors = {(message.conversation, message.id): message.agent or message.author for message in case.cited}
    for session, answer in confirmed_violations(case):
        who = name_of(authors.get((session.conversation, answer.at), "agent"), session.conversation)
        limit, judge = constraint_name(answer.mechanism), one_line(answer.judge, 60)
        where = in_title(case, session).removeprefix(", ")
        yield Point(
            kind="violation",
            sentence=sentence_start(f"{who} crosses a hard limit, {limit}{f', in {where}' if where else ''}."),
            sure=sentences().how_sure["violation"].format(judge=judge),
            quote=answer.quotes[0].text if answer.quotes else "",
            speaker=who,
            conversation=session.conversation,
            message_id=answer.at,
            id=answer.at,
            title=session_name(session),
            state="sure",
        )


def _findings(case: Case, *, sure: bool) -> Iterator[Point]:
    for finding in order_findings(case.findings):
        if finding.is_lead is not sure:
            yield finding_point(finding, case)


def finding_point(finding: Finding, case: Case | None = None) -> Point:
    """A finding in a sentence, with its last quote, and in a ``case`` of several conversations where it stands."""
    home = finding.conversations[0] if finding.conversations else ""
    who = name_of(finding.agent, home)
    whom = f" to {name_of(finding.target, home)}" if finding.target else ""
    gist = sentences().patterns.get(finding.pattern)
    what = f"{_a_title(finding)}{f': {gist}' if gist else ''}"
    title = home_title(home, case)
    days = f"{homes_words(finding, case)}{days_words(finding.start, finding.end)}"
    count = counted(len(finding.message_ids), "message")
    verb = "is" if len(finding.message_ids) == 1 else "are"
    strongest = finding.quotes[-1] if finding.quotes else None
    return Point(
        kind="finding",
        sentence=f"{sentence_start(count)} from {who}{whom}{days} {verb} consistent with {what}.",
        sure=sure_words(finding),
        quote=strongest.text if strongest else "",
        speaker=who,
        conversation=_home(finding, strongest),
        message_id=strongest.message_id if strongest else finding.message_ids[0],
        id=finding.finding_id[:16],
        confidence=finding.confidence,
        title=title,
        state=finding_state(finding),
    )


def finding_state(finding: Finding) -> State:
    """``sure`` from a confidence of SURE on where SUPPORT messages show it and more than an unmeasured reader says so,
    ``lead`` where it is not likely or nobody measured how likely."""
    if finding.is_lead:
        return "lead"
    supported = len(set(finding.message_ids)) >= SUPPORT and not is_unmeasured_reading(finding)
    return "sure" if supported and (finding.confidence or 0.0) >= SURE else "finding"


def _home(finding: Finding, quote: Quote | None) -> str:
    """The conversation of a quoted message."""
    homes = dict(zip(finding.message_ids, finding.message_conversations, strict=False))
    first = finding.conversations[0] if finding.conversations else ""
    return homes.get(quote.message_id, first) if quote else first


def _a_title(finding: Finding) -> str:
    return one_line(finding.title, 80).lower()


def _deductions(case: Case, *, sure: bool) -> Iterator[Point]:
    """Points taken, one thing to look at for each mechanism and kind of a session, the worst session first.

    ``sure``: what the session's own code and output show; else what wording alone says.
    """
    for session in order_sessions(case):
        yield from _session_deductions(case, session, sure=sure)


def _session_deductions(case: Case, session: SessionVerdict, *, sure: bool) -> Iterator[Point]:
    groups: dict[tuple[str, str, str], list[Deduction]] = {}
    for deduction in session.deductions:
        if (deduction.mechanism == "false_promise") is sure:
            about = _promised(session, deduction) if sure and deduction.kind not in OF_CODE else ""
            key = (deduction.mechanism, deduction.kind, about and about + deduction.episode)
            groups.setdefault(key, []).append(deduction)
    for (mechanism, kind, _), group in sorted(groups.items(), key=lambda item: -sum(d.points for d in item[1])):
        yield _deduction(case, session, mechanism, kind, group)


def _deduction(case: Case, session: SessionVerdict, mechanism: str, kind: str, group: Sequence[Deduction]) -> Point:
    words, promises, first = sentences(), sentences().promises, group[0]
    form = promises.get(kind, promises[""]) if mechanism == "false_promise" else words.mechanisms.get(mechanism)
    form = form or promises[""]
    if mechanism == "false_promise" and _of_another_check(session, first):
        form = promises["other_check"]
    sure = words.how_sure.get(kind, words.how_sure.get(mechanism, words.how_sure["unmeasured"]))
    pasted = mechanism == "false_promise" and is_pasted(case, session, first)
    if pasted:
        form, sure = promises["pasted"], words.how_sure["pasted"]
    messages = list(dict.fromkeys(each.message_id for each in group))
    who = name_of(_speaker(session, first.message_id), session.conversation)
    template = form.once if len(messages) == 1 else form.more
    happened = template.format(
        who=who, times=times_words(len(messages)), what=_promised(session, first), shown=shown_words(first.quotes[1:2])
    )
    places = turns_listed(sorted({each.position for each in group}))
    quote = first.quotes[0] if first.quotes else None
    return Point(
        kind="claim" if mechanism == "false_promise" else "lead",
        sentence=f"{sentence_start(happened)} ({places}{in_title(case, session)}).",
        sure=sure,
        quote=_claim_sentence(session, first) or (quote.text if quote else ""),
        speaker=who,
        conversation=session.conversation,
        message_id=first.message_id,
        id=first.message_id,
        title=session_name(session),
        state="finding" if pasted else "sure" if mechanism == "false_promise" else "lead",
    )


def _promised(session: SessionVerdict, deduction: Deduction) -> str:
    """What the message claimed, by the ledger."""
    own = [each for each in session.claims if each.message_id == deduction.message_id and each.state in AGAINST]
    own = [each for each in _meant(session, deduction) if each in own] or own
    kinds = sorted((each.kind for each in own), key=lambda kind: kind not in CHECKED)
    return sentences().claims[next(iter(kinds), "done")]


def _of_another_check(session: SessionVerdict, deduction: Deduction) -> bool:
    """Whether a test failed and the claim is about something else: that it builds may still be so."""
    claimed = _promised(session, deduction) in {sentences().claims[kind] for kind in ("build", "lint")}
    return claimed and any(_TEST_FAILED.search(quote.text) for quote in deduction.quotes[1:2])


def _claim_sentence(session: SessionVerdict, deduction: Deduction) -> str:
    """The whole sentence of a false promise, as the ledger has it."""
    return next((claim.sentence.text for claim in _meant(session, deduction)), "")


def _meant(session: SessionVerdict, deduction: Deduction) -> list[LedgerClaim]:
    """The claims in the sentence for which points were deducted."""
    start, own = deduction.quotes[0].start if deduction.quotes else -1, deduction.message_id
    return [it for it in session.claims if it.message_id == own and it.sentence.start <= start < it.sentence.end]


def _speaker(session: SessionVerdict, message_id: str) -> str:
    moments = (each.agent for each in session.moments if each.message_id == message_id)
    claims = (each.agent for each in session.claims if each.message_id == message_id)
    return next(chain(claims, moments), "assistant")


def _leads(case: Case) -> tuple[list[Point], list[Point]]:
    """At most LEADS of what was counted; apart those about companions, of which their turns say more."""
    companions = {each.conversation for each in case.sessions if each.profile == "companion"}
    leads = [lead for lead in shown_leads(case.leads) if lead.kind != "message"]
    of_companions = [lead for lead in leads if lead.kind == "conversation" and lead.conversation in companions]
    others = [lead for lead in leads if lead not in of_companions]
    return [_lead(case, lead) for lead in others[:LEADS]], [_lead(case, lead) for lead in of_companions[:LEADS]]


def _lead(case: Case, lead: Lead) -> Point:
    home, first = places_of(lead)[0]
    quote = next((each for each in lead.quotes if len(each.text.split()) >= WORDS), next(iter(lead.quotes), None))
    who = name_of(lead.agent, lead.conversation or home)
    lines = _lead_lines(case, lead, home)
    session = next((each for each in case.sessions if each.conversation == lead.conversation), None)
    where = in_title(case, session).removeprefix(", ") if session else ""
    start = f"Start with {who}{f' in {where}' if where else ''}"
    if lead.kind == "conversation":  # between two, of whom counting names neither
        start = f"Read {where or 'the conversation'}"
        who = next((line.speaker for line in lines if quote and line.message_id == quote.message_id), "")
    return Point(
        kind="lead",
        sentence=f"{start}: {_within(lead.reason)}",
        sure=lead_words(lead),
        quote=quote.text if quote else "",
        speaker=who,
        conversation=home,
        message_id=quote.message_id if quote else first,
        id=quote.message_id if quote else first,
        title=session_name(session) if session else "",
        lines=lines if len(lines) > 1 else (),
        lead_id=lead.id,
        rank=lead.rank,
    )


def _lead_lines(case: Case, lead: Lead, home: str) -> tuple[DatedLine, ...]:
    """How it goes on in the first conversation of a lead: the strongest quote of each stretch, and who wrote it."""
    cited = {message.id: message for message in case.cited if message.conversation == home}
    quotes = [each for each in lead.quotes if each.message_id in cited and len(each.text.split()) >= WORDS]
    by_strength = {quote.message_id: place for place, quote in enumerate(quotes)}
    parts = stretches(sorted(quotes, key=lambda quote: cited[quote.message_id].position), LINES)
    shown = [min(part, key=lambda quote: by_strength[quote.message_id]) for part in parts]
    return tuple(DatedLine(each.message_id, name_of(cited[each.message_id].agent, home), each.text) for each in shown)


def _within(reason: str) -> str:
    """The reason of a lead behind a colon."""
    return f"{reason[:1].lower()}{reason[1:]}" if reason.startswith(("The ", "In its ")) else reason


def _is_supposed(quote: Quote, text: str | None) -> bool:
    """Whether the words are what somebody might think or say, as in ``I don't want you to think I lied``."""
    return text is not None and _SUPPOSED.search(text[max(0, quote.start - 40) : quote.start]) is not None


def _moments(case: Case) -> Iterator[Point]:
    """Where an agent says it itself; outside coding sessions a lead with the whole message, since who is pressed admits
    what never was."""
    words, texts = sentences(), {(message.conversation, message.id): message.text for message in case.cited}
    for session in order_sessions(case):
        for item in session.moments:
            of_wording = item.basis == "words" or session.profile == "companion"
            if item.kind == "smoking_gun" and item.code in words.moments and item.quotes and of_wording:
                if _is_supposed(item.quotes[0], texts.get((session.conversation, item.message_id))):
                    continue
                who = name_of(item.agent, session.conversation)
                admitted = words.moments[item.code].format(who=who)
                confession = item.code == ADMISSION and session.profile != "coding"
                whole = texts.get((session.conversation, item.message_id)) if confession else None
                yield Point(
                    kind="moment",
                    sentence=f"{sentence_start(admitted)} ({at_turn(case, session, item.position)}).",
                    sure=words.how_sure[ADMISSION if confession else f"moment_{item.basis}"],
                    quote=one_line(whole, WHOLE) if whole else item.quotes[0].text,
                    speaker=who,
                    conversation=session.conversation,
                    message_id=item.message_id,
                    id=item.message_id,
                    title=session_name(session),
                    state="finding" if item.basis == "words" and not confession else "lead",
                )


def _requests(case: Case) -> Iterator[Point]:
    """Who asks for things that are worth a look together."""
    for asks in requests_together(case):
        session, first = asks.session, asks.gravest
        does = sentence_start(f"{first.speaker} {asks.does}{in_title(case, session)}.")
        yield Point(
            kind="moment",
            sentence=f"{does} {asks.counted.reason}" if asks.counted else does,
            sure=lead_words(asks.lead, case.leads),
            quote=first.quote,
            speaker=first.speaker,
            conversation=session.conversation,
            message_id=first.message_id,
            id=first.message_id,
            title=session_name(session),
            lines=asks.lines,
            lead_id=asks.lead.id,
            rank=asks.lead.rank,
        )


def _turns(case: Case) -> Iterator[Point]:
    """What wording alone suggests of companions, the conversation with most of it first, and each of them once before
    any a second time."""
    points = []
    for session in heaviest_first(case):
        points += [_turn(case, session, item, others) for item, others in labelled(session)]
        if session.profile == "companion":
            points += _session_deductions(case, session, sure=False)
    yield from spread(points)


def _turn(case: Case, session: SessionVerdict, item: Moment, others: int) -> Point:
    return Point(
        kind="moment",
        sentence=turn_sentence(item, name_of(item.agent, session.conversation), others, in_title(case, session)),
        sure=sentences().how_sure["moment_signal"],
        quote=item.quotes[0].text,
        speaker=name_of(item.agent, session.conversation),
        conversation=session.conversation,
        message_id=item.message_id,
        id=item.message_id,
        title=session_name(session),
    )
