"""Sentences about verdicts and findings: the same in the report, on the terminal and in JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from undersong.core.sanitize import one_line
from undersong.core.text import counted, mechanism_name
from undersong.models import (
    NEGATIVE_TRAITS,
    Case,
    Finding,
    Missed,
    Moment,
    SessionVerdict,
    Usage,
    by_pattern,
)
from undersong.models.finding import OWN_RULE
from undersong.report.claims_view import against
from undersong.report.private_talk import is_graded, shown_mechanisms
from undersong.report.sequence_words import any_sequence_read, reading_words, sequence_gaps
from undersong.report.sureness import sure_words, tenths_words
from undersong.routing.budget import at_most
from undersong.rows.corpus_scales import signals_above_null

DEAREST = 5  # conversations whose tokens a report names
ASKED = 0.5  # the limit that most shipped patterns hold a harmful trait against
FLAGGED = 3  # messages with phrase flags from which on an agent is named: the router's repeat flags
OFTEN = 2  # times as often as in all messages
RARE = 0.05  # the chance at most that anybody is named where all flag alike: Bonferroni's bound over the agents
NAMED = 5  # agents that a sentence names
TO_READ = {  # the kind of a moment that a reader should see, and its noun
    "smoking_gun": "smoking gun",
    "distress": "distress code",
    "conduct": "noted turn",
    "candidate": "candidate",
}
LOW_COVERAGE = 0.5  # of the turns; with less than half read, a reader should not take the verdict for the session
SMALL_Q = 0.05  # what a reader who filters by q will usually ask for
NO_ANSWER = {"refused": "refused", "failed": "without a usable answer", "unread": "not asked"}
UNKNOWN = "unknown:"  # how the session context vector marks what the data does not tell

UNGRADED = "no score: private talk is not graded"
FULL = 100  # the score of a session of which no point was taken


def assessed_words(verdict: SessionVerdict) -> str:
    """``assessed 1 of 4 mechanisms (false promise)``."""
    assessed = _names(verdict, "assessed")
    named = f" ({', '.join(assessed)})" if assessed else ""
    return f"assessed {len(assessed)} of {len(verdict.mechanisms)} mechanisms{named}"


def cost_words(case: Case) -> str:
    """``0.12 USD``, or that the price is not known: then it is no zero."""
    if case.spent is not None and case.spent.total.cost is None:
        return "an unknown sum (the judge's price is not known)"
    return f"{case.cost:.2f} USD"


def judge_words(case: Case) -> Iterator[str]:
    """What the answers took, per tier and for the dearest conversations, and what was measured of the judge."""
    if case.spent is not None:
        yield f"Tokens: {_usage_words(case.spent.total)}."
        tiers = (f"{tier.replace('_', ' ')}: {_usage_words(used)}" for tier, used in case.spent.tiers.items())
        yield f"By tier: {'; '.join(tiers)}."
        most = sorted(case.spent.conversations.items(), key=lambda item: (-item[1].input - item[1].output, item[0]))
        named = "; ".join(f"{one_line(name, 60)}: {_usage_words(used)}" for name, used in most[:DEAREST])
        more = f"; case.json holds all {len(most)}" if len(most) > DEAREST else ""
        yield f"By conversation, the dearest first: {named}{more}."
    yield from address_words(case.parameters)
    yield from _price_words(case.parameters)
    yield from agreement_words(case.parameters)
    yield from _measured_words(case.parameters)


def address_words(parameters: Mapping[str, Any]) -> Iterator[str]:
    """Where questions went, when the environment named another address than the provider's own."""
    for variable, address in parameters.get("judge_addresses", {}).items():
        yield f"Questions went to {address}, which {variable} names in the environment."


def agreement_words(parameters: Mapping[str, Any]) -> Iterator[str]:
    """How far the two judges of a panel agree; nothing where one judge was asked."""
    agreement = parameters.get("judge_agreement")
    if agreement is None:
        return
    both, one = agreement["both"], agreement["one"]
    alone = f"; {counted(one, 'message')} by one of them alone" if one else ""
    judges, scored = " and ".join(agreement["judges"]), counted(both, "message")
    yield f"Two judges read every question ({judges}): both scored {scored}{alone}."
    if not both:
        return
    flips = agreement["flips"]
    yield f"On any negative trait of .5 or more they disagree on {flips:,} of {both:,} ({flips / both:.0%})."
    farthest = sorted(agreement["apart"].items(), key=lambda item: (-item[1], item[0]))
    yield f"They lie apart on average: {', '.join(f'{trait} {apart:.2f}' for trait, apart in farthest)}."


def _price_words(parameters: Mapping[str, Any]) -> Iterator[str]:
    lists = parameters.get("prices", ())
    files = [f"{each['list']} list of {each['as_of']} ({each['sha256'][:12]}…)" for each in lists]
    if files:
        yield f"Costs were counted with the {', then the '.join(files)}."


def _usage_words(used: Usage) -> str:
    share = f" ({used.cached / used.input:.0%} from the provider's cache)" if used.input else ""
    cost = "price not known" if used.cost is None else f"{used.cost:.4f} USD"
    return f"{counted(used.calls, 'call')}, {used.input:,} in{share}, {used.output:,} out, {cost}"


def _measured_words(parameters: Mapping[str, Any]) -> Iterator[str]:
    calibration = parameters.get("calibration")
    if calibration is not None:
        figures = [each["value"] for each in calibration["figures"]["spearman"].values() if each["value"] is not None]
        mean = f"{sum(figures) / len(figures):.2f}" if figures else "not defined"
        harm = calibration["harmful"]
        auc = "not defined" if harm["value"] is None else f"{harm['value']:.2f} [{harm['low']:.2f}, {harm['high']:.2f}]"
        on = f"{counted(calibration['messages'], 'labelled message')} of {calibration['labels']}"
        yield (
            f"Calibrated on {on}: mean rank correlation over the traits {mean}, AUC of any harm {auc} (95 % over "
            "authors)."
        )
        if learnt := calibration.get("learnt_from"):
            yield (
                f"No measurement: the judge was trained on {learnt:,} of these labelled messages. The figures say how "
                "well it remembers, not how well it judges, and it counts as uncalibrated."
            )
    if maps := parameters.get("score_maps"):
        figures = [f"{trait} {each['before']:.2f} to {each['after']:.2f}" for trait, each in sorted(maps.items())]
        yield (
            "Scores went through maps that were fitted to labels, and the judge's own stand beside them in "
            f"evaluations.jsonl; mean absolute error on other authors: {', '.join(figures)}."
        )
    yield from _shift_words(parameters.get("judge_shifts", ()))
    for reading in parameters.get("double_check", ()):
        apart = max(reading["apart"].values(), default=0.0)
        counts = f"{reading['messages']} of {reading['asked']}"
        sample = f"width {reading['width'].replace('_', ' ')}, {counts} messages scored twice"
        flips = f"{reading['flips']} change on any negative trait of .5 or more"
        yield f"Read again in another framing ({sample}): at most {apart:.3f} apart in a trait, {flips}."


def _shift_words(shifts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What repeats and context do to the scores, by width; stability counts with both."""
    for shift in shifts:
        sample = (
            f"width {shift['width'].replace('_', ' ')}, {shift['messages']} of {shift['asked']} messages scored twice"
        )
        if shift["kind"] == "repeat" and shift["messages"]:
            least = f"{max(shift['apart'].values(), default=0.0):.3f}"
            yield f"Two readings by this judge ({sample}) lie {least} apart on average in its least steady trait."
        if shift["kind"] == "context" and shift["messages"]:
            moved = sorted(shift["moved"].items(), key=lambda item: (-abs(item[1]), item[0]))
            named = ", ".join(f"{trait} {-by:+.3f}" for trait, by in moved)
            yield f"Thread and history move its scores ({sample}): {named}."


def score_name(sessions: Iterable[SessionVerdict]) -> str:
    """What the score is called: of coding agents' work it says nothing about people."""
    profiles = {session.profile for session in sessions}
    return "sovereignty score" if "companion" in profiles else "session score"


def place_noun(sessions: Iterable[SessionVerdict]) -> str:
    """``session`` where all are work of coding agents, else ``conversation``: one word in a whole report."""
    profiles = {session.profile for session in sessions}
    return "session" if profiles == {"coding"} else "conversation"


def score_words(verdict: SessionVerdict) -> str:
    """The score with what it stands on; never a bare number, and never a number where nothing was assessed."""
    if verdict.score is None:
        return f"no {score_name((verdict,))}: {assessed_words(verdict)}" if is_graded((verdict,)) else UNGRADED
    turns = len({each.position for each in verdict.moments if each.kind != "protective"})
    spoken = counted(number, "message speaks", "messages speak") if (number := against(verdict)) else ""
    if verdict.score == FULL and (spoken or turns):  # full marks beside either would read as an all-clear
        beside = f"and {spoken} against it" if spoken else f"{counted(turns, 'turn')} noted"
        return f"no points taken, {beside}; {assessed_words(verdict)}"
    risk = ", marked Psychogenic Risk" if verdict.psychogenic_risk else ""
    return f"{score_name((verdict,))} {verdict.score} of 100{risk}; {assessed_words(verdict)}"


def coverage_words(verdict: SessionVerdict, *, calibrated: bool = False) -> str:
    """``12 of 80 messages read by judge offline, uncalibrated``; without a calibration it is never left unsaid."""
    if not verdict.read:
        return f"0 of {verdict.messages:,} messages read by a judge"
    judges = " and ".join(verdict.judges)
    kind = "calibrated" if calibrated else "uncalibrated"
    return f"{verdict.read:,} of {verdict.messages:,} messages read by judge {judges}, {kind}"


def qualified_words(verdict: SessionVerdict, *, calibrated: bool = False) -> tuple[str, ...]:
    """What qualifies a verdict: ``low coverage`` where less than half was read, ``uncalibrated judge``; () if nothing.

    The score itself stands on words, code and tool results of every message; what a judge read bears on the patterns,
    the codes and the protective moments beside it.
    """
    qualifiers = []
    if verdict.read < LOW_COVERAGE * verdict.messages:
        qualifiers.append(f"low coverage: {verdict.read:,} of {counted(verdict.messages, 'turn')} read by a judge")
    if verdict.read and not calibrated:
        qualifiers.append("uncalibrated judge")
    return tuple(qualifiers)


def confirmation_words(verdict: SessionVerdict) -> str:
    """What a judge said of the flagged places: confirmed, not confirmed, not said; "" where none was put to one."""
    answers = verdict.confirmations
    if not answers:
        return ""
    states = Counter[str](each.state for each in answers)
    yes = sum(each.yes is True for each in answers)
    counts = [f"{yes} confirmed", f"{states['scored'] - yes} not confirmed"]
    counts += [f"{states[state]} {words}" for state, words in NO_ANSWER.items() if states[state]]
    judges = " and ".join(dict.fromkeys(each.judge for each in answers))
    return f"{counted(len(answers), 'flagged place')} put to judge {judges}, each by itself: {', '.join(counts)}."


def kind_words(case: Case) -> tuple[str, ...]:
    """How many scores are ranks, and which signals stand out of the reference range, in sentences."""
    read = case.states.get("scored", 0)
    sentences = []
    if case.ranked:
        sentences.append(
            f"Trait scores of {case.ranked:,} of {counted(read, 'message')} are ranks within this corpus, no levels: "
            "the judge was not measured on text of this kind. No threshold is applied to them; --judge names another."
        )
    if case.signals:
        over_band = [
            f"{name} ({case.signals[name].over:,} over {case.signals[name].high:.2f})"
            for name in signals_above_null(case.signals)
        ]
        shown = ", ".join(over_band) if over_band else "none"
        sentences.append(f"Signals over their reference range in more than a tenth of the messages: {shown}.")
    return tuple(sentences)


def missed_words(missed: Missed | None) -> tuple[str, ...]:
    """What the router left out and how much of it is harmful, in sentences; none where it was not counted."""
    if missed is None:
        return ()
    return (*_left_out_words(missed), *_routed_unread_words(missed.routed_unread))


def _routed_unread_words(unread: int) -> tuple[str, ...]:
    """That a judge did not score all that it was called for."""
    if not unread:
        return ()
    they = "It is" if unread == 1 else "They are"
    return (
        f"Beside these, {counted(unread, 'message')} that the router called for got no scores (a budget, a refusal "
        f"or a failure). {they} counted neither as harmful nor as harmless.",
    )


def _left_out_words(missed: Missed) -> tuple[str, ...]:
    routed = f"{missed.routed_harmful:,} of the messages that it routed are harmful"
    meaning = "(harmful: any negative trait of .5 or more by this judge)"
    if not missed.left_out:
        return (f"The router left out no message; {routed} {meaning}.",)
    if missed.number is None or missed.rate is None or missed.share is None:
        unknown = "none has scores that are levels, so how many are harmful is not known"
        return (f"Of {counted(missed.left_out, 'message')} that the router does not call for, {unknown}.",)
    if missed.exact:
        harmful_words = f"{missed.harmful:,} of them are harmful, an exact count"
        return (
            f"All {missed.left_out:,} messages that the router would leave out were read: {harmful_words}; "
            f"{routed} {meaning}.",
        )
    drawn = f"{missed.harmful:,} of the {missed.sampled:,} that were read as the audit sample are harmful"
    count, low, high = missed.number
    rate, share = (f"{each[0]:.1%} [{each[1]:.1%}, {each[2]:.1%}]" for each in (missed.rate, missed.share))
    return (
        f"The router left out {missed.left_out:,} messages; {drawn} {meaning}.",
        f"Estimated harmful among all of these: {count:,.0f} [{low:,.0f}, {high:,.0f}] at 95 %, which is {rate} of "
        f"them and {share} of all harmful messages; {routed}.",
    )


def low_scores_words(case: Case) -> tuple[str, ...]:
    """That no finding is no acquittal, where an uncalibrated judge gave the scores."""
    harmful = {trait: score for trait, score in case.highest.items() if trait in NEGATIVE_TRAITS}
    if case.findings or case.parameters.get("calibrated") is True or not harmful:
        return ()
    trait = max(harmful, key=lambda name: (harmful[name], name))
    highest = f"its highest harmful score in any message is {harmful[trait]:.2f} ({mechanism_name(trait)})"
    if harmful[trait] > ASKED:
        return (f"That says little: the judge is uncalibrated, so its scores may miss a limit by height; {highest}.",)
    low = f"{highest}, where most patterns ask for more than {ASKED}"
    return (f"That says little: the judge is uncalibrated, and {low}.",)


def idle_patterns(case: Case) -> tuple[int, int]:
    """How many patterns could not be looked for, of how many."""
    patterns = by_pattern(case.outcomes)
    return 0 if any_sequence_read(case) else sum(each.status != "ran" for each in patterns), len(patterns)


def unassessed_words(case: Case) -> tuple[str, ...]:
    """What could not be looked for, so that neither nothing nor little found is an all-clear; () where all could."""
    idle, patterns = idle_patterns(case)
    looked_for = (each.mechanisms if is_graded((each,)) else shown_mechanisms(each) for each in case.sessions)
    partly = sum(any(one.assessment != "assessed" for one in mechanisms) for mechanisms in looked_for)
    gaps = list(sequence_gaps(case))
    if idle:
        gaps.insert(0, f"{idle:,} of {counted(patterns, 'pattern')} could not be looked for")
    read = case.states.get("scored", 0)
    if 0 < case.ranked < read:  # where all are ranks, the patterns themselves could not be looked for
        gaps.append(
            f"patterns over scores pass over {case.ranked:,} of {counted(read, 'message')}, whose scores are ranks"
        )
    if partly:
        places = counted(len(case.sessions), place_noun(case.sessions))
        gaps.append(f"not every mechanism of the score was assessed in {partly:,} of {places}")
    anything_found = case.findings or any(session.deductions for session in case.sessions)
    opening = "More than what was found may be there" if anything_found else "This is no all-clear"
    return (f"{opening}: {'; '.join(gaps)}.",) if gaps else ()


def guns_words(case: Case) -> tuple[str, ...]:
    """How many turns stand under smoking guns, which neither the score nor the findings tell."""
    guns = [each for session in case.sessions for each in session.guns]
    turns = len({each.message_id for each in guns})
    if not turns:
        return ()
    names = ", ".join(f"{title} ({count:,})" for title, count in Counter(each.title for each in guns).items())
    return (f"{counted(turns, 'turn')} to read first, as smoking guns, which take no points: {names}.",)


def to_read_words(verdicts: Iterable[SessionVerdict], without: Collection[str] = ()) -> str:
    """``1 smoking gun, 6 noted turns``: what is to be read in sessions without a deduction; "" for nothing."""
    kinds = Counter[str](each.kind for verdict in verdicts for each in verdict.moments)
    nouns = {kind: noun for kind, noun in TO_READ.items() if kinds[kind] and kind not in without}
    return ", ".join(counted(kinds[kind], noun) for kind, noun in nouns.items())


def annotation_words(case: Case) -> tuple[str, ...]:
    """How much else stands in the sessions to be read, beside smoking guns, and in how many."""
    guns = ("smoking_gun",)
    to_read, places = (
        to_read_words(case.sessions, guns),
        sum(bool(to_read_words((each,), guns)) for each in case.sessions),
    )
    return (
        (f"Also to read, without points: {to_read}, in {counted(places, place_noun(case.sessions))}.",)
        if to_read
        else ()
    )


def flagged_words(case: Case) -> tuple[str, ...]:
    """Whose messages hold phrases of harmful traits far more often than all messages do, and than chance among so many
    agents would give (a binomial tail, held against RARE / agents); () where nobody's."""
    messages = sum(each.messages for each in case.agents)
    usual = sum(each.flagged for each in case.agents) / max(messages, 1)
    frequent = [
        each
        for each in case.agents
        if each.flagged >= FLAGGED
        and each.flagged >= OFTEN * usual * each.messages
        and 1 - at_most(each.flagged - 1, each.messages, usual) <= RARE / len(case.agents)
    ]
    frequent.sort(key=lambda agent: (-agent.flagged / agent.messages, agent.agent))
    if not frequent:
        return ()
    named = ", ".join(
        f"{one_line(each.agent, 40)} ({each.flagged:,} of {each.messages:,})" for each in frequent[:NAMED]
    )
    more = f" and {counted(len(frequent) - NAMED, 'more agent')}" if len(frequent) > NAMED else ""
    return (
        f"Phrases of harmful kinds stand in {usual:.1%} of all messages, and at least {OFTEN} times as often in "
        f"those of {named}{more}. Phrases send a reader there; they accuse nobody.",
    )


def not_applicable_words(counts: Mapping[str, int]) -> str:
    """``accuracy 12, broken logic 8``: traits by the number of read messages to which they do not apply."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{trait.replace('_', ' ')} {count:,}" for trait, count in ordered)


def gaps_words(verdict: SessionVerdict) -> tuple[str, ...]:
    """One line for each mechanism that could not be looked for, with the reason."""
    states = {"not_assessed": "not assessed", "not_applicable": "not applicable"}
    return tuple(
        f"{mechanism_name(each.name)}: {states[each.assessment]}; {each.reason}"
        for each in shown_mechanisms(verdict)
        if each.assessment != "assessed"
    )


def moment_label(moment: Moment) -> str:
    """``[CODE-A: Sympathetic Arousal]`` for a distress code, ``candidate: …``, the title for any other moment."""
    if moment.kind == "candidate":
        return f"candidate: {moment.title[:1].lower()}{moment.title[1:]}"
    if moment.kind != "distress":
        return moment.title
    return f"[CODE-{moment.code}: {moment.title}]"


def context_words(verdict: SessionVerdict) -> str:
    """``code heavy; not known: marathon``: the context vector with what could not be told named as such."""
    unknown = [name.removeprefix(UNKNOWN) for name in verdict.session_context_vector if name.startswith(UNKNOWN)]
    present = [name for name in verdict.session_context_vector if not name.startswith(UNKNOWN)]
    parts = [", ".join(present).replace("_", " ") or "nothing notable"]
    if unknown:
        parts.append(f"not known: {', '.join(unknown).replace('_', ' ')}")
    return "; ".join(parts)


def certainty_words(finding: Finding) -> tuple[str, ...]:
    """How sure a finding is, a clause per number; what was not computed is named."""
    if finding.is_read:
        return (reading_words(finding),)
    sure = _confidence_words(finding)
    phrases = (_chance_words(finding), _q_words(finding), _stability_words(finding))
    missing = [name for name, words in zip(("chance", "q", "stability"), phrases, strict=True) if not words]
    clauses = [sure, *(words for words in phrases if words)]
    if missing:
        clauses.append(f"{', '.join(missing)}: not computed in this run")
    return tuple(clauses)


def basis_words(draws: int, family: int, tested: int) -> tuple[str, ...]:
    """What chance and q of a run stand on, and what to ask for where q cannot become small; () without any."""
    if not draws or not tested:
        return ()
    pairs = f"{family:,} pairs of sequence and pattern, {tested:,} with a match"
    basis = f"chance from up to {draws:,} shuffles each, q over {pairs}"
    floor = min(1.0, family / (tested * (draws + 1)))  # every tested pair at the lowest chance
    if floor <= SMALL_Q:
        return (basis,)
    return basis, f"with so few shuffles q cannot fall below {floor:.2g}, whatever the messages say; see --draws"


def _confidence_words(finding: Finding) -> str:
    if finding.confidence is None:
        whose = " for a rule of your own" if OWN_RULE in finding.notes else ""
        return f"a lead: how often such a finding is true was not measured{whose}"
    shown = sure_words(finding) if finding.reading else tenths_words(finding.confidence)
    words = f"confidence {finding.confidence:.1f}: {shown}"
    return f"a lead, {words}" if finding.is_lead else words


def _chance_words(finding: Finding) -> str:
    if finding.chance is None or finding.shuffles is None:
        return ""
    strong, drawn = finding.shuffles
    return (
        f"in {strong:,} of {drawn:,} shuffles of the same messages a match at least as strong as the strongest of this "
        f"sequence arose (chance {_small(finding.chance)})"
    )


def _q_words(finding: Finding) -> str:
    if finding.q is None:
        return ""
    share = f"{100 * finding.q:.{0 if finding.q >= 0.01 else 1}f} %"
    return (
        f"q {_small(finding.q)}: if you act on all findings of this run with q no higher than this, "
        f"expect at most about {share} of them to be order by chance"
    )


def _stability_words(finding: Finding) -> str:
    if finding.survived is None:
        return ""
    return f"still there in {finding.survived:,} of {finding.replicas:,} replicas with the noise of a second reading"


def _small(value: float) -> str:
    """``0.5``, ``0.042``, ``0.00001``: two digits, never with an exponent."""
    return f"{value:.2g}" if value >= 0.0001 else f"{value:.6f}".rstrip("0")


def _names(verdict: SessionVerdict, assessment: str) -> list[str]:
    return [mechanism_name(each.name) for each in verdict.mechanisms if each.assessment == assessment]


def outcome_words(finding: Finding) -> tuple[str, ...]:
    """What came of a finding towards somebody, in a sentence; none where it is not known."""
    if finding.outcome is None or finding.target is None:
        return ()
    if finding.outcome.request is None:
        return (f"after it began no request to {finding.target} was found",)
    place = finding.outcome.request.message_id
    asked = f"after it began {finding.agent} asked {finding.target} for something (message {place})"
    if finding.outcome.reply is None:
        return (f"{asked}; no answer is in the conversation",)
    words = {"complied": "which complied", "refused": "which refused"}.get(
        finding.outcome.answer, "whose answer is unclear"
    )
    return (f"{asked}, {words} (message {finding.outcome.reply.message_id})",)
