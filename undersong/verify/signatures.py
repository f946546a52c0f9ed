"""Who signed a report: the manifest, which covers all of it but ``run.json``, and ``run.json`` beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from undersong.core.manifest import NAME, RUN
from undersong.verify.manifest_check import Discrepancy
from undersong.verify.ssh_signature import (
    SUFFIX,
    PublicKey,
    SignatureError,
    Signer,
    check_signature,
    signed_by,
)

SIGNED = (NAME, RUN)
UNSIGNED = "nobody signed it: who made it, and when, is not shown"
NOT_CHECKED = "signed, it says, by {}, which nobody compared with a key that you trust: name that with --key"
RUN_OPEN = "run.json (when the run was, how long it took) differs with every run, so no digest covers it"


def sign_report(folder: Path, signer: Signer | None) -> tuple[str, ...]:
    """Write the signatures of a report's manifest, and of ``run.json`` where it is there; the names of the files.

    Without a signer nothing is written.
    """
    names = []
    if signer is None:
        return ()
    for name in SIGNED:
        if (folder / name).exists():
            target = folder / f"{name}{SUFFIX}"
            target.touch(mode=0o600)
            target.write_text(signer.sign((folder / name).read_bytes()), encoding="ascii")
            names.append(target.name)
    return tuple(names)


def compare_signatures(folder: Path, keys: Sequence[PublicKey]) -> Iterator[Discrepancy]:
    """What is not signed by one of the keys."""
    for name in SIGNED:
        if not (folder / name).exists():
            continue
        where = f"{name}{SUFFIX}"
        try:
            text = (folder / where).read_text(encoding="ascii")
            check_signature((folder / name).read_bytes(), text, keys)
        except FileNotFoundError:
            yield Discrepancy(what="is missing: nobody signed this file", where=where)
        except (OSError, UnicodeDecodeError):
            yield Discrepancy(what="cannot be read", where=where)
        except SignatureError as reason:
            yield Discrepancy(what=f"the signature {reason}", where=where)


def not_shown(folder: Path, keys: Sequence[PublicKey] | None) -> Iterator[str]:
    """What a check of this report does not show, in words."""
    if keys is None:
        path = folder / f"{NAME}{SUFFIX}"
        yield NOT_CHECKED.format(_claimed(path)) if path.exists() else UNSIGNED
    if (folder / RUN).exists() and keys is None:
        yield RUN_OPEN


def _claimed(path: Path) -> str:
    try:
        return signed_by(path.read_text(encoding="ascii")) or "nobody that can be read"
    except (OSError, UnicodeDecodeError):
        return "nobody that can be read"
