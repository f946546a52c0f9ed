"""The model of the offline judge that a report stands on, and the one that is here."""

from __future__ import annotations

from dataclasses import dataclass

from undersong.errors import UsageError
from undersong.judges.offline import OfflineJudge, model_hash, open_judge
from undersong.manifest import Manifest
from undersong.verify.discrepancy import NotPossibleError

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
