"""``undersong sign``: a report signed with an SSH key."""

from __future__ import annotations

from pathlib import Path

import click

from undersong.cli.help import examples
from undersong.errors import UsageError


@click.command(
    "sign",
    **examples(
        ("undersong sign undersong-report --key ~/.ssh/id_ed25519", "sign what audit wrote"),
        ("undersong verify undersong-report --key alice.pub", "what somebody else does with it"),
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--key", required=True, metavar="FILE", help="A private key of OpenSSH: Ed25519, ECDSA or RSA.")
def command(folder: Path, key: str) -> None:
    """Sign a report with an SSH key: writes manifest.json.sig, and run.json.sig for what the manifest does not cover.

    The signatures are those of `ssh-keygen -Y sign -n undersong-report`, which also signs with a key that has a
    passphrase or is in an agent. They say who stands for the report, not that it is right; see docs/report.md.
    """
    from undersong.core.manifest import is_report
    from undersong.verify.signatures import sign_report
    from undersong.verify.ssh_signature import read_signer

    if not is_report(folder):
        raise UsageError("is no report of undersong", where=str(folder), remedy="name the folder that audit wrote")
    signer = read_signer(Path(key).expanduser())
    for name in sign_report(folder, signer):
        click.echo(f"{folder / name}: signed by {signer.public.fingerprint}")
