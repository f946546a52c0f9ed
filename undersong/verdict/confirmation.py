"""Confirmation by a judge: candidates of its own, its answers about flagged places, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.datafiles.verdict_config import mechanisms
from undersong.judges.protocol import Segment
from undersong.models import Confirmed, Conversation, Deduction, Message, Moment, Row, Scan, SessionVerdict
from undersong.verdict.transcript import (
    NO_POINTS,
    DetectorResult,
    Transcript,
    TranscriptTurn,
    candidate,
    deduction,
    quote,
)

KIND = "confirmed_by_judge"
Answers = Mapping[tuple[str, str], Confirmed]


def with_judge_candidates(
    results: Mapping[str, DetectorResult], transcript: Transcript, rows: Iterable[Row]
) -> dict[str, DetectorResult]:
    """The detectors' results with what a judge saw in single messages: candidates, where nothing else stands there."""
    readings = {row.id: (row.judge or "unnamed", row.reading.mechanisms) for row in rows if row.reading is not None}
    added: dict[str, list[Moment]] = {name: [] for name in results}
    for turn in transcript.turns:
        judge, seen = readings.get(turn.message.id, ("", ()))
        for indicator in seen if turn.is_agent else ():
            if (
                indicator.id in results
                and indicator.quote
                and turn.message.id not in _places(results[indicator.id], indicator.id)
            ):
                added[indicator.id].append(
                    _judge_candidate(indicator.id, indicator.quote, indicator.confidence, turn, judge)
                )
    return {
        name: each._replace(candidates=(*each.candidates, *added[name])) if added[name] else each
        for name, each in results.items()
    }


def with_answers(
    results: Mapping[str, DetectorResult], transcript: Transcript, confirmations: Iterable[Confirmed]
) -> dict[str, DetectorResult]:
    """The same after a judge was asked about the flagged places.

    A candidate of a mechanism that is confirmed takes its points, with the judge's quotes; one that is not stays a
    candidate. Points that stand on the session's own evidence stand without a confirmation. Both say what the judge
    said. Drift takes no points either way.
    """
    answers = {(each.mechanism, each.at): each for each in confirmations}
    if not answers:
        return dict(results)
    turns = {turn.message.id: turn for turn in transcript.turns}
    return {name: _answered(each, answers, turns) for name, each in results.items()}


def answer_words(answer: Confirmed) -> str:
    """What became of the question, in one sentence."""
    if answer.state == "unread":
        return f"Judge {answer.judge} was not asked: {answer.reason}."
    if answer.state == "refused":
        return f"Judge {answer.judge} was asked whether these words show it, and refused to say."
    if answer.state == "failed":
        return f"Judge {answer.judge} was asked whether these words show it, and gave no answer that can be used."
    verb = "confirms it" if answer.yes else "does not confirm it"
    why = f" ({answer.reason})" if answer.reason else ""  # where the two judges of a panel disagree
    return f"Judge {answer.judge}, asked whether these words by themselves show it, {verb}{why}."


def _places(result: DetectorResult, code: str) -> set[str]:
    return {each.message_id for each in result.deductions} | {
        each.message_id for each in result.candidates if each.code == code
    }


def _judge_candidate(code: str, words: str, confidence: float | None, turn: TranscriptTurn, judge: str) -> Moment:
    start = max(turn.message.text.find(words), 0)
    quotes = (quote(turn.message, start, start + len(words)),)
    title = f"{mechanisms().mechanisms[code].title}, as a judge reads it"
    moment = candidate(code, title, turn, f"Judge {judge} reads it so in this message.", quotes)
    return msgspec.structs.replace(moment, basis="judge", strength=confidence)


def _answered(result: DetectorResult, answers: Answers, turns: Mapping[str, TranscriptTurn]) -> DetectorResult:
    new = [each for each in result.candidates if _takes_points(each, answers)]
    taken = {(each.code, each.message_id) for each in new}
    unconfirmed = (each for each in result.candidates if (each.code, each.message_id) not in taken)
    deductions = (
        *_deductions_with_answers(result.deductions, answers),
        *(_charged(each, answers, turns) for each in new),
    )
    return DetectorResult(
        deductions,
        tuple(_moment_with_answer(each, answers) for each in unconfirmed),
        "" if deductions else result.absent,
    )


def _takes_points(moment: Moment, answers: Answers) -> bool:
    answer = answers.get((moment.code, moment.message_id))
    return answer is not None and answer.yes is True and moment.code in mechanisms().mechanisms


def _charged(moment: Moment, answers: Answers, turns: Mapping[str, TranscriptTurn]) -> Deduction:
    answer = answers[moment.code, moment.message_id]
    words = f"{moment.explanation.removesuffix(NO_POINTS).rstrip()} {answer_words(answer)}"
    own = [each for each in answer.quotes if each.message_id == moment.message_id]
    quotes = (*own, *(each for each in answer.quotes if each.message_id != moment.message_id))
    return deduction(moment.code, KIND, turns[moment.message_id], words, quotes)


def _moment_with_answer(moment: Moment, answers: Answers) -> Moment:
    answer = answers.get((moment.code, moment.message_id))
    if answer is None:
        return moment
    return msgspec.structs.replace(moment, explanation=f"{moment.explanation} {answer_words(answer)}")


def _deductions_with_answers(deductions: Iterable[Deduction], answers: Answers) -> Iterator[Deduction]:
    """Points with what the judge said of them; of an episode it was asked about once."""
    episodes = {
        (each.mechanism, each.episode): answers[each.mechanism, each.message_id]
        for each in reversed(tuple(deductions))
        if each.episode and (each.mechanism, each.message_id) in answers
    }
    for deducted in deductions:
        answer = answers.get((deducted.mechanism, deducted.message_id)) or episodes.get(
            (deducted.mechanism, deducted.episode)
        )
        words = f"{deducted.explanation} {answer_words(answer)}" if answer else deducted.explanation
        yield msgspec.structs.replace(deducted, explanation=words)


TURNS_ROUND = frozenset(
    {"epistemic_instability", "epistemic_drift"}
)  # one speaker says a thing, and later its opposite
ALONE = frozenset({"semantic_camouflage"})  # one message shows it; the others are context
BEFORE, AFTER = 4, 2  # messages around a place that are shown as context


def segments(conversation: Conversation, verdict: SessionVerdict) -> tuple[Segment, ...]:
    """One for each deduction and candidate, in order; repeats of one episode are asked about once.

    A turnabout is put as two messages of its speaker, at any distance; a promise or a blame as the message and the one
    that contradicts it, where that is another; anything else as the message alone.
    """
    messages = [message for message in conversation.messages if message.branch is None]
    places = {message.id: place for place, message in enumerate(messages)}
    by_episode: dict[tuple[str, str], Segment] = {}
    for mechanism, episode, claim in _flagged(verdict):
        shown = _shown(mechanism, claim, messages, places)
        if shown:
            around = _around(claim, shown, messages, places)
            segment = Segment(mechanism=mechanism, messages=shown, around=around, at=claim.message_id)
            by_episode.setdefault((mechanism, episode), segment)
    return tuple(sorted(by_episode.values(), key=lambda entry: (places[entry.at], entry.mechanism)))


def constraint_segments(conversation: Conversation, scans: Sequence[Scan]) -> tuple[Segment, ...]:
    """One for each hard constraint whose words a message has: the message alone, those around it as context."""
    messages = [message for message in conversation.messages if message.branch is None]
    places = {message.id: place for place, message in enumerate(messages)}
    return tuple(
        Segment(mechanism=constraint, messages=(message,), around=_near(places[message.id], messages), at=message.id)
        for message, scan in zip(conversation.messages, scans, strict=True)
        if message.id in places and message.text.strip()
        for constraint in scan.hard_constraints
    )


def _near(at: int, messages: Sequence[Message]) -> tuple[Message, ...]:
    around = (*messages[max(0, at - BEFORE) : at], *messages[at + 1 : at + 1 + AFTER])
    return tuple(message for message in around if message.text.strip())


def _flagged(verdict: SessionVerdict) -> Iterator[tuple[str, str, Deduction | Moment]]:
    """Mechanism, episode and claim."""
    for claim in verdict.deductions:
        yield claim.mechanism, claim.episode or claim.message_id, claim
    for moment in verdict.moments:
        if moment.kind == "candidate":
            yield moment.code, moment.message_id, moment


def _shown(
    mechanism: str, claim: Deduction | Moment, messages: Sequence[Message], places: dict[str, int]
) -> tuple[Message, ...]:
    """The message and, where the mechanism lies between two, the other one; () where that one is missing."""
    turn = messages[places[claim.message_id]]
    quoted = [messages[places[name]] for name in _quoted(claim) if name in places and name != turn.id]
    if mechanism in TURNS_ROUND:
        earlier = [each for each in quoted if each.agent == turn.agent and places[each.id] < places[turn.id]]
        before = _before(turn, quoted, messages, places)
        other = earlier[0] if earlier else before
        return () if other is None else (other, turn)
    if mechanism in ALONE or not quoted:
        return (turn,)
    return tuple(sorted((turn, quoted[0]), key=lambda message: places[message.id]))


def _quoted(claim: Deduction | Moment) -> tuple[str, ...]:
    return tuple(dict.fromkeys(quote.message_id for quote in claim.quotes))


def _before(
    turn: Message, quoted: Sequence[Message], messages: Sequence[Message], places: dict[str, int]
) -> Message | None:
    """What the speaker said last before the other side's words that are quoted, or else before anybody answered."""
    others = [places[each.id] for each in quoted if places[each.id] < places[turn.id]]
    asked = (place for place in range(places[turn.id] - 1, -1, -1) if messages[place].agent != turn.agent)
    end = min(others) if others else next(asked, 0)
    return next((each for each in reversed(messages[:end]) if each.agent == turn.agent and each.text.strip()), None)


def _around(
    claim: Deduction | Moment, shown: Sequence[Message], messages: Sequence[Message], places: dict[str, int]
) -> tuple[Message, ...]:
    """What else the claim quotes, and the nearest messages; of two shown ones those between them."""
    at = places[claim.message_id]
    first = places[shown[0].id] if len(shown) > 1 else 0
    last = places[shown[-1].id] if len(shown) > 1 else len(messages) - 1
    near = [*range(max(first, at - BEFORE), at), *range(at + 1, min(last, at + AFTER) + 1)]
    wanted = {*near, *(places[name] for name in _quoted(claim) if name in places)}
    own = {each.id for each in shown}
    return tuple(
        messages[place] for place in sorted(wanted) if messages[place].id not in own and messages[place].text.strip()
    )
