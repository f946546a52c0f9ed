"""``--judge focused=X,deep=Y,deep_with_context=Z``: a model and an effort per tier; and the table of providers."""

from __future__ import annotations

import re
from importlib import import_module

from undersong.errors import UsageError
from undersong.judges.llm.judge import LLMJudge
from undersong.judges.llm.seat import ModelClient
from undersong.judges.llm.spec import ModelSpec, parse_model_spec
from undersong.judges.terms import RunLimits
from undersong.models import Tier
from undersong.rulebook import did_you_mean

# provider → module and class of its backend
PROVIDERS = {
    "anthropic": ("undersong.judges.llm.anthropic", "AnthropicBackend"),
    "openai": ("undersong.judges.llm.openai", "OpenAIBackend"),
}
NAMED: tuple[Tier, ...] = ("focused", "deep", "deep_with_context")
_NEXT = re.compile(rf",(?=(?:{'|'.join(NAMED)})=)")


def tier_specs(argument: str) -> dict[Tier, ModelSpec]:
    """The model of each tier; one that is not named has that of the next shallower one, or else of the next deeper.

    ``standard`` (the audit sample, and messages read with --all) has that of ``focused``. Raises UsageError.
    """
    named_tiers: dict[str, ModelSpec] = {}
    for part in _NEXT.split(argument):
        tier, _, name = part.partition("=")
        if tier not in NAMED:
            remedy = did_you_mean(tier, list(NAMED))
            raise UsageError(f"no tier '{tier}' that is read", where=f"--judge {argument}", remedy=remedy)
        named_tiers[tier] = spec_of(name)
    last = next(named_tiers[tier] for tier in NAMED if tier in named_tiers)
    by_tier: dict[Tier, ModelSpec] = {"standard": named_tiers.get("focused", last)}
    for tier in NAMED:
        last = by_tier[tier] = named_tiers.get(tier, last)
    return by_tier


def tier_specs_of(judge: str) -> dict[Tier, ModelSpec]:
    """The model of each tier of ``--judge NAME`` in either form; raises UsageError for a judge that asks none."""
    return tier_specs(judge if "=" in judge.partition(":")[0] else f"focused={judge}")


def spec_of(name: str) -> ModelSpec:
    """``anthropic:MODEL`` and the like; raises UsageError for a provider that is not known."""
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS:
        remedy = did_you_mean(provider, list(PROVIDERS))
        raise UsageError(f"'{provider}' asks no model", where=f"--judge {name}", remedy=remedy)
    return parse_model_spec(provider, model)


def model_client(spec: ModelSpec, limits: RunLimits, *, asks: bool = True) -> ModelClient:
    """The model with its backend; without ``asks`` no key is needed, and only kept answers are read."""
    module, name = PROVIDERS[spec.provider]
    provider = import_module(module)
    return ModelClient(spec, limits, getattr(provider, name)(spec, limits) if asks else None, provider.parse_completion)


def judge_of(by_tier: dict[Tier, ModelSpec], limits: RunLimits, *, asks: bool = True) -> LLMJudge:
    """A judge that asks these models; tiers with the same model share one connection and one pace."""
    models = {spec: model_client(spec, limits, asks=asks) for spec in dict.fromkeys(by_tier.values())}
    return LLMJudge(name_of(by_tier), {tier: models[spec] for tier, spec in by_tier.items()}, limits)


def name_of(by_tier: dict[Tier, ModelSpec]) -> str:
    """As a user writes it: one model, or one per tier."""
    if len(set(by_tier.values())) == 1:
        return by_tier["focused"].name
    return ",".join(f"{tier}={by_tier[tier].name}" for tier in NAMED)


def open_judge(argument: str, limits: RunLimits) -> LLMJudge:
    """The judge of ``focused=X,deep=Y,deep_with_context=Z``."""
    return judge_of(tier_specs(argument), limits)
