"""Which LLM judges are at hand on this machine: keys in the environment, servers on loopback, programs; best first."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from undersong.datafiles.yaml_loader import RULES, DataFile, read
from undersong.judges.llm.presets import Preset, load_presets
from undersong.judges.llm.pricing import Price, price_of

SECONDS = 0.5  # that a server on this machine has to answer in
MOST_BYTES = 1 << 20  # of a list of models
LOOPBACK = "127.0.0.1"
INSTALL = "pip install 'undersong[llm]'"
_JUDGE = re.compile(r"--judge ('[^']*'|\S+)")
BUDGET = 5  # USD, in commands that are offered


class RecommendedModel(DataFile, frozen=True, kw_only=True):
    """A provider of ``judges.yaml``: ``model`` "" is the server's own, or not known."""

    provider: str
    model: str
    package: str
    quality: str


class JudgeProgram(DataFile, frozen=True, kw_only=True):
    """A program that can be asked by ``command:``."""

    name: str
    judge: str


class JudgesFile(DataFile, frozen=True, kw_only=True):
    """``rules/judges.yaml``."""

    unmeasured: str
    providers: tuple[RecommendedModel, ...]
    programs: tuple[JudgeProgram, ...]


class AtHand(NamedTuple):
    """A judge that could be named: why it is here, what is still missing ("" = nothing), price and known quality."""

    judge: str
    because: str
    missing: str
    price: Price
    quality: str

    @property
    def ready(self) -> bool:
        """Whether it can be asked now."""
        return not self.missing

    @property
    def free(self) -> bool:
        """Whether it costs nothing per question."""
        return self.price.input == 0 and self.price.output == 0


ListModels = Callable[[str], list[str]]


def served_models(url: str) -> list[str]:
    """The models that a server on this machine says it has, [] where nobody answers; asks no other machine."""
    if urlsplit(url).hostname != LOOPBACK:
        return []
    import urllib.request  # here, since few runs ask

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url.rstrip('/')}/models", timeout=SECONDS) as answer:
            listed = json.loads(answer.read(MOST_BYTES))["data"]
        return [entry["id"] for entry in listed if isinstance(entry["id"], str) and entry["id"].isprintable()]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def judges_at_hand(
    environment: Mapping[str, str] | None = None, list_models: ListModels = served_models
) -> tuple[AtHand, ...]:
    """What could judge here, the ready ones first; servers on loopback are asked for their models, nobody else."""
    variables = os.environ if environment is None else environment
    candidates = (*_by_key(variables), *_by_server(list_models), *_by_program())
    return tuple(sorted(candidates, key=lambda candidate: not candidate.ready))


def judge_option(environment: Mapping[str, str] | None = None, list_models: ListModels = served_models) -> str:
    """``--judge NAME`` of the first judge that is ready here; of the recommended one where none is."""
    first = next((each for each in judges_at_hand(environment, list_models) if each.ready), None)
    if first is None:
        default = load_judges().providers[0]
        return f"--judge {default.provider}:{default.model}"
    return f"--judge {shlex.quote(first.judge)}"


def judge_command(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, list_models: ListModels = served_models
) -> str:
    """A whole command with a judge for this machine: ``judge_command(["audit", "logs/"])``.

    One that costs something has a budget. Where no judge is ready the command says what to do first.
    """
    first = next((each for each in judges_at_hand(environment, list_models) if each.ready), None)
    words = ["undersong", *arguments]
    if first is not None:
        budget = () if first.free or first.price.input is None else ("--budget", str(BUDGET))
        return shlex.join([*words, "--judge", first.judge, *budget])
    default = load_judges().providers[0]
    key = load_presets()[default.provider].key
    setup = "" if _installed(default.package) else f"{INSTALL} && "
    named = shlex.join([*words, "--judge", f"{default.provider}:{default.model}", "--budget", str(BUDGET)])
    return f"{setup}{key}=YOUR_KEY {named}"


def libraries() -> dict[str, str | None]:
    """The vendors' libraries that judges need, with their version; None: not installed."""
    from importlib.metadata import version  # here, since few runs ask

    packages = dict.fromkeys(entry.package for entry in load_judges().providers if entry.package)
    return {name: version(name) if _installed(name) else None for name in packages}


def for_this_machine(command: str, candidates: Sequence[AtHand] | None = None) -> str | None:
    """A command that names a judge, with the one that is ready here; None where none is, or where it names that one.

    Without ``candidates`` only keys are looked at: an audit connects to nobody that it was not told to ask.
    """
    known_here = judges_at_hand(list_models=lambda _: []) if candidates is None else candidates
    first = next((candidate for candidate in known_here if candidate.ready), None)
    if first is None or shlex.quote(first.judge) in command:
        return None
    named = _JUDGE.sub(lambda _: f"--judge {shlex.quote(first.judge)}", command)
    return named if first.free or first.price.input is None or "--budget" in named else f"{named} --budget {BUDGET}"


@cache
def load_judges() -> JudgesFile:
    """The recommendations, read once; raises RuleError with file and line."""
    return read(RULES / "judges.yaml", JudgesFile)


def _by_key(environment: Mapping[str, str]) -> Iterator[AtHand]:
    presets = load_presets()
    for entry in load_judges().providers:
        preset = presets[entry.provider]
        if preset.key and environment.get(preset.key):
            yield _candidate(entry, entry.model or "MODEL", f"{preset.key} is set", _lacking(entry, environment))


def _lacking(entry: RecommendedModel, environment: Mapping[str, str]) -> str:
    preset = load_presets()[entry.provider]
    if not _installed(entry.package):
        return INSTALL
    if preset.path and not preset.url and not environment.get(preset.url_from):
        return f"set {preset.url_from}"
    return "" if entry.model else "name the MODEL"


def _by_server(list_models: ListModels) -> Iterator[AtHand]:
    presets = load_presets()
    for entry in load_judges().providers:
        preset = presets[entry.provider]
        if not _is_local(preset):
            continue
        for model in list_models(preset.url)[:3]:
            missing = "" if _installed(entry.package) else INSTALL
            yield _candidate(entry, model, f"a server answers at {preset.url}", missing)


def _by_program() -> Iterator[AtHand]:
    for program in load_judges().programs:
        if shutil.which(program.name):
            because, missing = (
                f"the program {program.name} is installed",
                "nobody has tried it",
            )
            yield AtHand(program.judge, because, missing, price_of("command"), load_judges().unmeasured)


def _is_local(preset: Preset) -> bool:
    return urlsplit(preset.url).hostname == LOOPBACK


def _candidate(entry: RecommendedModel, model: str, because: str, missing: str) -> AtHand:
    name = f"{entry.provider}:{model}"
    return AtHand(name, because, missing, price_of(name), entry.quality or load_judges().unmeasured)


def _installed(package: str) -> bool:
    return not package or importlib.util.find_spec(package) is not None
