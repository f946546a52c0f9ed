"""A report is signed with an SSH key as ssh-keygen signs, and stamped by a time-stamp service as OpenSSL checks it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from tests.conftest import Undersong
from undersong.errors import UsageError
from undersong.verify import check
from undersong.verify.ssh_signature import NAMESPACE, read_public_keys, read_signer

DOC = Path(__file__).parent.parent.parent / "docs" / "report.md"
REPORT = Path("undersong-report")
KINDS = {"ed25519": (), "rsa": ("-b", "3072"), "ecdsa": ("-b", "384")}
needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def run(*command: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(part) for part in command], input=data, capture_output=True, check=False)


def key(kind: str, name: str = "key", phrase: str = "") -> Path:
    """A new key by ssh-keygen, here."""
    made = run("ssh-keygen", "-q", "-t", kind, *KINDS[kind], "-N", phrase, "-C", "alice", "-f", name)
    assert made.returncode == 0, made.stderr
    return Path(name)


def ssh_verify(public: Path, file: Path) -> bool:
    """What ``ssh-keygen -Y verify`` says of ``FILE.sig``."""
    Path("allowed").write_text(f"alice@example.org {public.read_text()}")
    options = ("-f", "allowed", "-I", "alice@example.org", "-n", NAMESPACE, "-s", f"{file}.sig")
    return run("ssh-keygen", "-Y", "verify", *options, data=file.read_bytes()).returncode == 0


@needs_ssh
@pytest.mark.parametrize("kind", KINDS)
def test_ssh_keygen_accepts_what_we_sign_and_we_what_it_signs(undersong: Undersong, kind: str) -> None:
    private = key(kind)
    public = private.with_name("key.pub")
    assert undersong("audit", "samples", "--draws", "9", "--no-store", "--sign", str(private)).code == 0
    for name in ("manifest.json", "run.json"):
        assert ssh_verify(public, REPORT / name)
        assert (REPORT / f"{name}.sig").stat().st_mode & 0o077 == 0
    checked = undersong("verify", str(REPORT), "--key", str(public))
    assert (checked.code, "checked: the signature" in checked.out) == (0, True), checked
    for name in ("manifest.json", "run.json"):
        (REPORT / f"{name}.sig").unlink()
        run("ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", private, REPORT / name)
    assert check(REPORT, keys=read_public_keys(Path("key.pub"))).discrepancies == ()


@needs_ssh
def test_what_is_not_signed_by_the_key_is_named(undersong: Undersong) -> None:
    private, other = key("ed25519"), key("ed25519", "other")
    undersong("audit", "samples", "--draws", "9", "--no-store")
    unsigned = undersong("verify", str(REPORT), "--key", "key.pub")
    assert (unsigned.code, unsigned.out.count("nobody signed this file")) == (1, 2)
    assert "not shown: nobody signed it" in undersong("verify", str(REPORT)).out
    assert undersong("sign", str(REPORT), "--key", str(private)).code == 0
    unchecked = undersong("verify", str(REPORT))
    assert unchecked.code == 0
    assert f"signed, it says, by {read_signer(private).public.fingerprint}" in unchecked.out
    assert "no digest covers it" in unchecked.out
    assert "signed by another key" in undersong("verify", str(REPORT), "--key", f"{other}.pub").out
    times = (REPORT / "run.json").read_text()
    (REPORT / "run.json").write_text(times.replace("seconds", "minutes"))
    changed = undersong("verify", str(REPORT), "--key", "key.pub")
    assert (changed.code, "run.json.sig: the signature is not what was signed" in changed.out) == (1, True)
    (REPORT / "run.json").write_text(times)
    assert undersong("verify", str(REPORT), "--key", "key.pub").code == 0
    run("ssh-keygen", "-Y", "sign", "-n", "file", "-f", private, REPORT / "run.json", data=b"y\n")
    (REPORT / "run.json.sig").write_text("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n")
    assert "is a signature of another version" in undersong("verify", str(REPORT), "--key", "key.pub").out
    assert undersong("audit", "samples", "--draws", "9", "--no-store").code == 0  # a signed report is ours to replace
    assert not (REPORT / "manifest.json.sig").exists()


@needs_ssh
def test_a_signature_for_another_purpose_is_refused(undersong: Undersong) -> None:
    private = key("ed25519")
    undersong("audit", "samples", "--draws", "9", "--no-store", "--sign", str(private))
    (REPORT / "manifest.json.sig").unlink()
    run("ssh-keygen", "-Y", "sign", "-n", "email", "-f", private, REPORT / "manifest.json")
    assert "for another purpose, 'email'" in undersong("verify", str(REPORT), "--key", "key.pub").out


@needs_ssh
def test_a_key_that_cannot_be_used_is_told_before_any_work(undersong: Undersong) -> None:
    key("ed25519", "locked", phrase="four words of mine")
    ran = undersong("audit", "samples", "--sign", "locked")
    assert (ran.code, "without a passphrase" in ran.err, "ssh-keygen -Y sign" in ran.err) == (2, True, True)
    assert not REPORT.exists()
    assert undersong("audit", "samples", "--sign", "nowhere").code == 2
    Path("allowed").write_text(f'alice namespaces="git" {Path("locked.pub").read_text()}')
    with pytest.raises(UsageError, match="has options"):
        read_public_keys(Path("allowed"))
    Path("none.pub").write_text("hello\n")
    with pytest.raises(UsageError, match="no public key"):
        read_public_keys(Path("none.pub"))


TSA = """
oid_section = oids
[oids]
[req]
distinguished_name = dn
prompt = no
[dn]
CN = test stamps
[ext]
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = stamps
[stamps]
serial = serial
signer_cert = tsa.pem
certs = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ess_cert_id_alg = sha256
"""


@needs_openssl
def test_the_documented_time_stamp_goes_round_with_a_service_of_our_own(undersong: Undersong) -> None:
    undersong("audit", "samples", "--draws", "9", "--no-store")
    Path("tsa.cnf").write_text(TSA)
    Path("serial").write_text("01")
    subject = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config", "tsa.cnf", "-extensions", "ext")
    assert run("openssl", "req", *subject, "-keyout", "tsa.key", "-out", "tsa.pem").returncode == 0
    shutil.copy("tsa.pem", "tsa-ca.pem")
    query, check_answer = re.findall(r"^openssl ts .*$", DOC.read_text(), re.MULTILINE)
    assert os.system(f"{query} 2>/dev/null") == 0
    reply = ("-queryfile", REPORT / "manifest.json.tsq", "-out", REPORT / "manifest.json.tsr")
    assert run("openssl", "ts", "-reply", "-config", "tsa.cnf", *reply).returncode == 0
    assert os.system(f"{check_answer} >/dev/null 2>&1") == 0
    assert undersong("verify", str(REPORT)).code == 0
    (REPORT / "manifest.json").write_bytes((REPORT / "manifest.json").read_bytes() + b" ")
    assert os.system(f"{check_answer} >/dev/null 2>&1") != 0
