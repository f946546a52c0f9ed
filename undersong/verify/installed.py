"""The rules, prompts and models of this installation beside those of the report, and what another version means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from undersong import __version__
from undersong.errors import UndersongError
from undersong.manifest import Manifest
from undersong.verify.discrepancy import Discrepancy
from undersong.verify.model import OFFLINE, Model

ANOTHER = "made with another version"


def installed_hashes(
    manifest: Manifest, rules: Sequence[str | Path] | None = None, model: Model | None = None
) -> tuple[dict[str, str], list[Discrepancy]]:
    """The hashes of this installation's rules and of the judges that the manifest names, where they can be opened.

    ``rules`` are the pattern files of a report that was made with other patterns than the shipped ones, ``model`` is
    what stands for its offline judge. A file that cannot be read as what it should be is a Discrepancy; its hashes are
    then missing.
    """
    from undersong.judges import is_paid, open_judge
    from undersong.judges.llm.specimens import judge_hashes
    from undersong.judges.stance import stance_hashes
    from undersong.outcomes import outcome_hashes
    from undersong.patterns import all_rules, rule_hashes
    from undersong.patterns.replicas import noise_hashes
    from undersong.redact import hashes as redaction_hashes
    from undersong.scan import load_book
    from undersong.verdict import rule_hashes as verdict_hashes

    hashes: dict[str, str] = {}
    broken: list[Discrepancy] = []
    readers: tuple[Callable[[], dict[str, str]], ...] = (
        lambda: load_book().hashes,
        verdict_hashes,
        noise_hashes,
        stance_hashes,
        outcome_hashes,
        lambda: rule_hashes(all_rules(rules)),
        redaction_hashes,
    )
    for read in readers:
        try:
            hashes |= read()
        except UndersongError as error:
            broken.append(Discrepancy(what=error.what, where=error.where or "rules"))
    judges = {str(manifest.parameters.get("judge", "")), *(use.judge for use in manifest.judges)} - {""}
    if model is not None:
        hashes |= model.judge.hashes
    for name in sorted(judges - {OFFLINE}):
        try:
            hashes |= judge_hashes() if is_paid(name) else open_judge(name).hashes
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
