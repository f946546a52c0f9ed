"""The installed rules, prompts and models, compared with those that the report names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from undersong import __version__
from undersong.core.manifest import Manifest
from undersong.core.text import json_hash
from undersong.errors import UndersongError, UsageError
from undersong.judges.measurement import PARAMETER, maps_of
from undersong.judges.offline import OfflineJudge, model_hash, open_judge
from undersong.verify.manifest_check import Discrepancy, NotPossibleError

ANOTHER = "made with another version"


def installed_hashes(
    manifest: Manifest, rules: Sequence[str | Path] | None = None, model: Model | None = None
) -> tuple[dict[str, str], list[Discrepancy]]:
    """The hashes of this installation's rules and of the judges that the manifest names, where they can be opened.

    ``rules`` are the pattern files of a report that was made with other patterns than the shipped ones, ``model`` is
    what stands for its offline judge. A file that cannot be read as what it should be is a Discrepancy; its hashes are
    then missing.
    """
    from undersong.judges.llm.prompt_fingerprint import judge_hashes
    from undersong.judges.llm.sequences import sequence_hashes
    from undersong.judges.protocol import asks_models, open_judge, panel_names
    from undersong.judges.stance import stance_hashes
    from undersong.patterns.catalog import all_rules, rule_hashes
    from undersong.pipeline.redaction import hashes as redaction_hashes
    from undersong.scan import load_book
    from undersong.verdict import rule_hashes as verdict_hashes

    hashes: dict[str, str] = {}
    broken: list[Discrepancy] = []
    readers: tuple[Callable[[], dict[str, str]], ...] = (
        lambda: load_book().hashes,
        verdict_hashes,
        stance_hashes,
        lambda: rule_hashes(all_rules(rules)),
        redaction_hashes,
        sequence_hashes,
    )
    for read in readers:
        try:
            hashes |= read()
        except UndersongError as error:
            broken.append(Discrepancy(what=error.what, where=error.where or "rules"))
    judges = {str(manifest.parameters.get("judge", "")), *(use.judge for use in manifest.judges)} - {""}
    if maps := maps_of(manifest.parameters):
        hashes[PARAMETER] = json_hash(maps)  # the report holds them whole
    if model is not None:
        hashes |= model.judge.hashes
    for name in sorted({part for each in judges for part in panel_names(each)} - {OFFLINE}):
        try:
            hashes |= judge_hashes() if asks_models(name) else open_judge(name).hashes
        except UndersongError:
            continue  # its files are then named as not installed
    return hashes, broken


def differences(manifest: Manifest, installed: Mapping[str, str], model: Model | None = None) -> Iterator[Discrepancy]:
    """The version and every rule, prompt and model that is another one here.

    A model of the user's own that is needed and not here is no difference: what it scored is not done again.
    """
    elsewhere = model.judge.hashes.keys() if model is not None and model.needed else frozenset[str]()
    if manifest.version != __version__:
        yield Discrepancy(what=ANOTHER, where="undersong", expected=manifest.version, found=__version__)
    for name, expected in sorted(manifest.hashes.items()):
        if name in elsewhere:
            continue
        if name not in installed:
            yield Discrepancy(what="is not installed here", where=name, expected=expected, found="nothing")
        elif installed[name] != expected:
            yield Discrepancy(what=ANOTHER, where=name, expected=expected, found=installed[name])


OFFLINE = "offline"
SHOWN = 16  # digits of the hash of a model


@dataclass(frozen=True)
class Model:
    """``judge`` is what is here; ``needed`` the hash of the model that the report names, "" where this is it."""

    judge: OfflineJudge
    needed: str = ""

    def opened(self) -> OfflineJudge:
        """The judge that the report was made with; raises NotPossibleError where it is another one."""
        if self.needed:
            which = f"the offline model {self.needed[:SHOWN]}, and {self.judge.hash[:SHOWN]} is installed"
            raise NotPossibleError(f"the report was made with {which}: name its folder with --judge {OFFLINE}:DIR")
        return self.judge


def model_of(manifest: Manifest, spec: str | None) -> Model | None:
    """The model ``spec`` names (None: the installed one); None for a report that no offline judge took part in.

    A report names a model of its own by a judge hash that follows from the hashes of its artefacts. Without a ``spec``
    such a model is ``needed``; an installed model that only has been changed is not. Raises UsageError for a ``spec``
    that names no offline model or is given for a report of another judge, JudgeError where the folder cannot be used.
    """
    name, _, folder = (spec or OFFLINE).partition(":")
    if name != OFFLINE:
        remedy = f"--judge {OFFLINE}:DIR; scores of other judges are not asked for again"
        raise UsageError(f"'{spec}' is no offline model", where="--judge", remedy=remedy)
    if OFFLINE not in {manifest.parameters.get("judge"), *(use.judge for use in manifest.judges)}:
        if spec is not None:
            what = f"this report was made by the judge '{manifest.parameters.get('judge')}'"
            raise UsageError(what, where="--judge", remedy="leave the option away")
        return None
    judge = open_judge(folder)
    return Model(judge, _needed(manifest, judge) if spec is None else "")


def _needed(manifest: Manifest, judge: OfflineJudge) -> str:
    reported_hash = str(manifest.parameters.get("judge_hash", ""))
    named = {name: manifest.hashes.get(name, "") for name in judge.hashes}
    return reported_hash if reported_hash != judge.hash and reported_hash == model_hash(named) else ""
