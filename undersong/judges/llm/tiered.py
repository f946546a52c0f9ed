"""``--judge focused=X,deep=Y,deep_with_context=Z``: a model and an effort per tier; and the table of providers."""

from __future__ import annotations

import re
from importlib import import_module

from undersong.errors import UsageError
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.llm.seat import Seat
from undersong.judges.llm.spec import Spec, parse
from undersong.judges.terms import Terms
from undersong.models import Tier
from undersong.rulebook import did_you_mean

# provider → module and class of its backend
PROVIDERS = {
    "anthropic": ("undersong.judges.llm.anthropic", "AnthropicBackend"),
    "openai": ("undersong.judges.llm.openai", "OpenAIBackend"),
}
NAMED: tuple[Tier, ...] = ("focused", "deep", "deep_with_context")
_NEXT = re.compile(rf",(?=(?:{'|'.join(NAMED)})=)")


def specs(argument: str) -> dict[Tier, Spec]:
    """The model of each tier; one that is not named has that of the next shallower one, or else of the next deeper.

    ``standard`` (the audit sample, and messages read with --all) has that of ``focused``. Raises UsageError.
    """
    given: dict[str, Spec] = {}
    for part in _NEXT.split(argument):
        tier, _, name = part.partition("=")
        if tier not in NAMED:
            remedy = did_you_mean(tier, list(NAMED))
            raise UsageError(f"no tier '{tier}' that is read", where=f"--judge {argument}", remedy=remedy)
        given[tier] = spec_of(name)
    last = next(given[tier] for tier in NAMED if tier in given)
    found: dict[Tier, Spec] = {"standard": given.get("focused", last)}
    for tier in NAMED:
        last = found[tier] = given.get(tier, last)
    return found


def named(judge: str) -> dict[Tier, Spec]:
    """The model of each tier of ``--judge NAME`` in either form; raises UsageError for a judge that asks none."""
    return specs(judge if "=" in judge.partition(":")[0] else f"focused={judge}")


def spec_of(name: str) -> Spec:
    """``anthropic:MODEL`` and the like; raises UsageError for a provider that is not known."""
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS:
        remedy = did_you_mean(provider, list(PROVIDERS))
        raise UsageError(f"'{provider}' asks no model", where=f"--judge {name}", remedy=remedy)
    return parse(provider, model)


def seat(spec: Spec, terms: Terms, *, asks: bool = True) -> Seat:
    """The model with its backend; without ``asks`` no key is needed, and only kept answers are read."""
    module, name = PROVIDERS[spec.provider]
    found = import_module(module)
    return Seat(spec, terms, getattr(found, name)(spec, terms) if asks else None, found.said)


def judge_of(found: dict[Tier, Spec], terms: Terms, *, asks: bool = True) -> LLMJudge:
    """A judge that asks these models; tiers with the same model share one connection and one pace."""
    seats = {spec: seat(spec, terms, asks=asks) for spec in dict.fromkeys(found.values())}
    return LLMJudge(name_of(found), {tier: seats[spec] for tier, spec in found.items()}, terms)


def name_of(found: dict[Tier, Spec]) -> str:
    """As a user writes it: one model, or one per tier."""
    if len(set(found.values())) == 1:
        return found["focused"].name
    return ",".join(f"{tier}={found[tier].name}" for tier in NAMED)


def open_judge(argument: str, terms: Terms) -> LLMJudge:
    """The judge of ``focused=X,deep=Y,deep_with_context=Z``."""
    return judge_of(specs(argument), terms)
