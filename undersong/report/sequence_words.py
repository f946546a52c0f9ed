"""Words about whole sequences: how they were read, how sure a finding of a reading is, how to read them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Case, Finding, SequenceReading
from undersong.models.finding import OWN_RULE, looked_for
from undersong.models.waiting import ANSWER_THERE
from undersong.report.sureness import is_unmeasured_reading, others_words, sure_words


def looked_for_words(case: Case) -> str:
    """``looked for 2 of 28 patterns``: the one statement of a report about rules. Rules of one pattern count once."""
    ran, patterns = looked_for(case.outcomes)
    by_rules = "by rules " if any_sequence_read(case) else ""
    return f"{by_rules}looked for {ran:,} of {counted(patterns, 'pattern')}"


def rules_words(case: Case) -> str:
    """The same over a table of rules, of which several may look for one pattern."""
    several = any(each.variant_of for each in case.outcomes)
    once = "; a pattern that several rules look for (names in _by_indicators, _by_sums) is counted once"
    return f"{looked_for_words(case).capitalize()}{once if several else ''}."


def reading_options(parameters: Mapping[str, Any]) -> str:
    """The options that decide what sequences were read and how findings were weighed, with a space before each."""
    read, prevalence = parameters.get("read", "messages"), parameters.get("prevalence")
    shown = "" if read == "messages" else f" --read {read}"
    shown += f" --profile {parameters['profile']}" if parameters.get("profile") else ""
    return shown if prevalence is None else f"{shown} --prevalence {prevalence:g}"


def sequence_words(case: Case) -> tuple[str, ...]:
    """How many sequences a judge read, what it saw, and why it did not read the others; () where it was not asked."""
    pairs, whole = [each for each in case.sequences if each.compares], whole_readings(case)
    if not whole:
        return tuple(_compared_words(pairs))
    read = [each for each in whole if each.state == "scored"]
    certain = [[shape.in_order for shape in each.shapes if shape.certainty] for each in read]
    seen, unordered = sum(map(any, certain)), sum(bool(each) and not any(each) for each in certain)
    words = f"{len(read):,} of {counted(len(whole), 'sequence')} read, in {seen:,} of them a shape"
    outcomes = Counter(each.outcome for each in read)
    words += f", {outcomes['let_go']:,} let go" if outcomes["let_go"] else ""
    words += f", {outcomes['failed']:,} failed: its quotes do not bear it out" if outcomes["failed"] else ""
    if unordered:
        words += f", in {unordered:,} one whose stages stand in another order, which is no finding"
    if dropped := sum(sum(each.rejected.values()) for each in read):
        words += f"; {counted(dropped, 'part')} of the answers thrown away, since the messages do not bear them out"
    return (f"{'; '.join((words, *_not_read(whole)))}.", *_compared_words(pairs))


def _not_read(readings: Sequence[SequenceReading]) -> Iterator[str]:
    reasons = Counter(each.reason or each.state for each in readings if each.state != "scored")
    yield from (f"{count:,} not read: {one_line(reason, 160)}" for reason, count in reasons.most_common(3))


def _compared_words(pairs: Sequence[SequenceReading]) -> Iterator[str]:
    if pairs:
        read = [each for each in pairs if each.state == "scored"]
        seen = sum(each.outcome == "confirmed" for each in read)
        asked = f"{len(read):,} of {counted(len(pairs), 'pair')} of conversations of one speaker read side by side"
        words = f"{asked}, in {seen:,} of them other conduct where it has less reason to think that it is watched"
        yield f"{'; '.join((words, *_not_read(pairs)))}."


def whole_readings(case: Case) -> list[SequenceReading]:
    """The readings of one conversation each."""
    return [each for each in case.sequences if not each.compares]


def sequence_gaps(case: Case) -> tuple[str, ...]:
    """Sequences that are still to be read, and answers that nobody can rely on; () where every one is settled."""
    whole = [each for each in whole_readings(case) if each.state != "scored"]
    pairs = sum(each.compares and each.state != "scored" for each in case.sequences)
    failed = [each for each in case.sequences if each.state == "scored" and not each.is_settled]
    waiting = sum(ANSWER_THERE in (each.reason or "") for each in whole)
    gaps = [f"{counted(waiting, 'sequence')} still to be answered: {ANSWER_THERE}"] if waiting else []
    gaps += [f"{counted(len(whole) - waiting, 'sequence')} that got no usable reading"] if len(whole) > waiting else []
    gaps += [f"{counted(pairs, 'pair')} of conversations that were not compared"] if pairs else []
    if failed:
        what = "sequence of which the reading failed" if len(failed) == 1 else "sequences of which the reading failed"
        gaps.append(f"{len(failed):,} {what}: the judge named a pattern, and its quotes do not bear it out")
    return tuple(gaps)


def any_sequence_read(case: Case) -> bool:
    """Whether a judge read at least one sequence, so that patterns were looked for in it."""
    return any(each.state == "scored" for each in whole_readings(case))


def reading_words(finding: Finding) -> str:
    """How sure a finding is that rests on a reading of the sequence."""
    certainty = round(finding.measures["certainty"])
    what = "two conversations side by side" if finding.compares else "the sequence"
    read = f"{', '.join(finding.judges)} read {what} and named it with certainty {certainty} of 4"
    if OWN_RULE in finding.notes:
        return f"{read}; how often that is right was not measured for a rule of your own"
    if finding.confidence is None:
        return f"{read}; how often that is right was not measured"
    share = f"where {100 * finding.measures.get('prevalence', 0):.2g} of 100 speakers are assumed to show a shape"
    if is_unmeasured_reading(finding):
        return f"{read}; how often this reader is right was not measured; {others_words(certainty)}, {share}"
    return f"{read}; {sure_words(finding)}, {share}"
