"""What a verdict says in words: the same in the report, on the terminal and in JSON."""

from __future__ import annotations

from undersong.models import NEGATIVE_TRAITS, AgentVerdict, Case, SessionVerdict

UNKNOWN = "unknown:"  # how the session context vector marks what the data does not tell


def number(count: int, noun: str, plural: str = "") -> str:
    """``1 message``, ``2,460 messages``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def mechanism_name(name: str) -> str:
    """``false_promise`` → ``false promise``."""
    return name.replace("_", " ")


def assessed_words(verdict: SessionVerdict) -> str:
    """``assessed 1 of 4 mechanisms (false promise)``."""
    assessed = _names(verdict, "assessed")
    named = f" ({', '.join(assessed)})" if assessed else ""
    return f"assessed {len(assessed)} of {len(verdict.mechanisms)} mechanisms{named}"


def score_words(verdict: SessionVerdict) -> str:
    """The score with what it stands on; never a bare number, and never a number where nothing was assessed."""
    if verdict.score is None:
        return f"no sovereignty score: {assessed_words(verdict)}"
    risk = ", marked Psychogenic Risk" if verdict.psychogenic_risk else ""
    return f"sovereignty score {verdict.score} of 100{risk}; {assessed_words(verdict)}"


def coverage_words(verdict: SessionVerdict, *, calibrated: bool = False) -> str:
    """``12 of 80 messages read by judge offline, uncalibrated``; without a calibration it is never left unsaid."""
    if not verdict.read:
        return f"0 of {verdict.messages:,} messages read by a judge"
    judges = " and ".join(verdict.judges)
    kind = "calibrated" if calibrated else "uncalibrated"
    return f"{verdict.read:,} of {verdict.messages:,} messages read by judge {judges}, {kind}"


def low_scores_words(case: Case) -> tuple[str, ...]:
    """That no finding is no acquittal, where an uncalibrated judge gave scores that hardly reach a pattern's limits."""
    harmful = {trait: score for trait, score in case.highest.items() if trait in NEGATIVE_TRAITS}
    if case.findings or case.parameters.get("calibrated") is True or not harmful:
        return ()
    trait = max(harmful, key=lambda name: (harmful[name], name))
    return (
        f"That says little: the judge is uncalibrated, and its highest harmful score in any message is "
        f"{harmful[trait]:.2f} ({mechanism_name(trait)}), where most patterns ask for more than 0.5.",
    )


def alignment_words(verdict: AgentVerdict) -> str:
    """``aligned by averages; hard constraints not assessed``: a status never hides what no judge looked for."""
    if verdict.alignment in ("unknown", "violation") or verdict.indicators_read == verdict.read:
        return verdict.alignment
    looked = f"assessed in {verdict.indicators_read:,} of {verdict.read:,} read" if verdict.indicators_read else ""
    return f"{verdict.alignment} by averages; hard constraints {looked or 'not assessed'}"


def alignment_colour(verdict: AgentVerdict, *, calibrated: bool = False) -> str:
    """The status whose colour it is shown in: nobody is green by an uncalibrated judge or by averages alone."""
    if verdict.alignment == "aligned" and not (calibrated and verdict.indicators_read == verdict.read):
        return "unknown"
    return verdict.alignment


def gaps_words(verdict: SessionVerdict) -> tuple[str, ...]:
    """One line for each mechanism that could not be looked for, with the reason."""
    states = {"not_assessed": "not assessed", "not_applicable": "not applicable"}
    return tuple(
        f"{mechanism_name(each.name)}: {states[each.assessment]}; {each.reason}"
        for each in verdict.mechanisms
        if each.assessment != "assessed"
    )


def context_words(verdict: SessionVerdict) -> str:
    """``code heavy; not known: marathon``: the context vector with what could not be told named as such."""
    unknown = [name.removeprefix(UNKNOWN) for name in verdict.context if name.startswith(UNKNOWN)]
    known = [name for name in verdict.context if not name.startswith(UNKNOWN)]
    told = [", ".join(known).replace("_", " ") or "nothing notable"]
    if unknown:
        told.append(f"not known: {', '.join(unknown).replace('_', ' ')}")
    return "; ".join(told)


def _names(verdict: SessionVerdict, assessment: str) -> list[str]:
    return [mechanism_name(each.name) for each in verdict.mechanisms if each.assessment == assessment]
