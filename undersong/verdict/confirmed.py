"""What a judge adds to the detectors: places of its own, and its answers about flagged ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from undersong.models import Confirmed, Deduction, Moment, Row
from undersong.verdict.books import mechanisms
from undersong.verdict.course import Transcript, TranscriptTurn, quote
from undersong.verdict.found import NO_POINTS, DetectorResult, candidate, deduction

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
    return f"Judge {answer.judge}, asked whether these words by themselves show it, {verb}."


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
