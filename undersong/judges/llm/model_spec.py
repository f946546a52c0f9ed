"""Parses ``--judge``: ``PROVIDER:MODEL+EFFORT@URL``, or ``focused=X,deep=Y,deep_with_context=Z`` with one per tier.

``command:PROGRAM ARGUMENTS`` names a program instead of a model, ``file:FOLDER`` a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.judges.llm.presets import Preset, load_presets, refuse_secrets, without_secrets
from undersong.judges.protocol import asks_models, panel_names
from undersong.models import Tier

# interface → module and class of its backend
BACKENDS = {
    "anthropic": ("undersong.judges.llm.providers.anthropic", "AnthropicBackend"),
    "openai": ("undersong.judges.llm.providers.openai", "OpenAIBackend"),
    "bedrock": ("undersong.judges.llm.providers.bedrock", "BedrockBackend"),
    "command": ("undersong.judges.llm.providers.command", "CommandBackend"),
    "file": ("undersong.judges.llm.providers.file", "FileBackend"),
}
VENDORS = ("anthropic", "openai")
NAMED: tuple[Tier, ...] = ("focused", "deep", "deep_with_context")
_NEXT = re.compile(rf",(?=(?:{'|'.join(NAMED)})=)")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SHAPE = re.compile(r"(?P<model>[^@]+?)(?:\+(?P<effort>[a-z]+))?(?:@(?P<url>https?://.+))?")


class ModelSpec(NamedTuple):
    """One model at one provider; ``effort`` None leaves it to the provider, ``url`` None is the provider's own."""

    provider: str
    model: str
    effort: str | None = None
    url: str | None = None

    @property
    def name(self) -> str:
        """As a user writes it, and as the rows record it."""
        effort = f"+{self.effort}" if self.effort else ""
        return f"{self.provider}:{self.model}{effort}" + (f"@{self.url}" if self.url else "")

    @property
    def preset(self) -> Preset:
        """How its provider is asked."""
        return load_presets()[self.provider]

    @property
    def hosted(self) -> bool:
        """Whether it takes the parameters of the vendors' own models; a server by address may be of any kind."""
        return self.preset.hosted and (self.url is None or self.provider not in VENDORS)


def parse_model_spec(provider: str, argument: str) -> ModelSpec:
    """The spec of what follows the provider's colon; raises UsageError for what is none."""
    if provider in ("command", "file") and argument.strip():
        return ModelSpec(provider, argument.strip())
    match = _SHAPE.fullmatch(argument)
    if match is not None and match["url"] is not None:
        refuse_secrets(match["url"], f"--judge {provider}:{match['model']}")
    where = f"--judge '{provider}:{argument}'"  # in quotes: a colon follows
    if match is None:
        raise UsageError("names no model", where=where, remedy=f"write {provider}:MODEL or {provider}:MODEL@http://…")
    if "," in match["model"]:
        remedy = "of two judges give both in full, as openai:MODEL,anthropic:MODEL"
        raise UsageError("a model has no comma in its name", where=where, remedy=remedy)
    effort = match["effort"]
    if effort is not None and effort not in EFFORTS:
        raise UsageError(f"unknown effort '{effort}'", where=where, remedy=f"known are {', '.join(EFFORTS)}")
    return ModelSpec(provider, match["model"], effort, match["url"])


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


def model_specs(judge: str) -> list[ModelSpec]:
    """The models that ``--judge NAME`` asks, in any form, each once; none for judges of other packages."""
    names = (name for name in panel_names(judge) if asks_models(name))
    return list(dict.fromkeys(spec for name in names for spec in tier_specs_of(name).values()))


def redirections(judge: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variable → address, without secrets, where the environment says where a judge's questions go."""
    if judge.partition(":")[0] == "replay":
        return {}
    specs = [spec for spec in model_specs(judge) if spec.url is None and spec.preset.url_from]
    variables = sorted({spec.preset.url_from for spec in specs})
    return {name: without_secrets(environment[name]) for name in variables if environment.get(name)}


def spec_of(name: str) -> ModelSpec:
    """``anthropic:MODEL`` and the like; raises UsageError for a provider that is not known."""
    provider, _, model = name.partition(":")
    if provider not in load_presets():
        remedy = did_you_mean(provider, list(load_presets()))
        raise UsageError(f"'{provider}' asks no model", where=f"--judge {name}", remedy=remedy)
    return parse_model_spec(provider, model)


def name_of(by_tier: dict[Tier, ModelSpec]) -> str:
    """As a user writes it: one model, or one per tier."""
    if len(set(by_tier.values())) == 1:
        return by_tier["focused"].name
    return ",".join(f"{tier}={by_tier[tier].name}" for tier in NAMED)
