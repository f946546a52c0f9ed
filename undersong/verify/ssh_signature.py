"""Signatures of files in OpenSSH's format (PROTOCOL.sshsig): those of ``ssh-keygen -Y sign``."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from undersong.errors import UsageError

NAMESPACE = "undersong-report"  # a signature under another purpose proves nothing here
SUFFIX = ".sig"
_MAGIC, _VERSION = b"SSHSIG", (1).to_bytes(4, "big")
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_WIDTH = 70  # characters of a line, as ssh-keygen writes them
_HASHES = frozenset({"sha256", "sha512"})
_KEY = re.compile(r"(?:^|\s)((?:ssh|ecdsa)-[a-z0-9-]+)\s+([A-Za-z0-9+/=]{16,})")
EXTRA = "pip install 'undersong[sign]'"


class SignatureError(Exception):
    """A signature that does not hold; the message says why."""


class PublicKey(NamedTuple):
    """A public key in OpenSSH's binary form."""

    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` prints it."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"


class Signer(NamedTuple):
    """A private key that signs, and its public key."""

    private: Any
    public: PublicKey

    def sign(self, data: bytes) -> str:
        """The signature of some bytes, as the text of a ``.sig`` file."""
        hashed = _signed_data(NAMESPACE.encode(), b"sha512", hashlib.sha512(data).digest())
        blob = _MAGIC + _VERSION + b"".join(
            map(_string, (self.public.blob, NAMESPACE.encode(), b"", b"sha512", _raw_signature(self.private, hashed)))
        )  # fmt: skip
        text = base64.b64encode(blob).decode()
        lines = [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
        return "\n".join((_BEGIN, *lines, _END, ""))


def read_signer(path: Path) -> Signer:
    """The private key in a file of OpenSSH (Ed25519, ECDSA, RSA) without a passphrase; UsageError where it is none."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
    except ModuleNotFoundError as error:
        raise UsageError("signing needs the package cryptography", remedy=EXTRA) from error
    try:
        private = load_ssh_private_key(path.read_bytes(), None)
        line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), remedy="name a private key") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        what = "is no private key of OpenSSH without a passphrase"
        remedy = f"sign with `ssh-keygen -Y sign -n {NAMESPACE} -f {path} DIR/manifest.json`, which asks for it"
        raise UsageError(what, where=str(path), remedy=remedy) from error
    return Signer(private, PublicKey(base64.b64decode(line.split()[1])))


def read_public_keys(path: Path) -> tuple[PublicKey, ...]:
    """The keys of a ``.pub`` file or a list of allowed signers; UsageError where there is none, or one has options."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("cannot be read as text", where=str(path), remedy="name a public key") from error
    keys = tuple(_public_keys(path, lines))
    if not keys:
        raise UsageError("holds no public key of OpenSSH", where=str(path), remedy="name KEY.pub, or allowed signers")
    return keys


def check_signature(data: bytes, text: str, keys: Sequence[PublicKey]) -> PublicKey:
    """The key of ``keys`` that signed these bytes; raises SignatureError where none of them did."""
    blob, namespace, algorithm, signature = _parts(text)
    key = PublicKey(blob)
    if key not in keys:
        raise SignatureError(f"is signed by another key, {key.fingerprint}")
    if namespace != NAMESPACE.encode():
        raise SignatureError(f"is a signature for another purpose, {namespace.decode('utf-8', 'replace')[:40]!r}")
    if algorithm.decode("ascii", "replace") not in _HASHES:
        raise SignatureError("is signed over a hash that is not SHA-256 or SHA-512")
    hashed = _signed_data(namespace, algorithm, hashlib.new(algorithm.decode(), data).digest())
    if not _holds(key, signature, hashed):
        raise SignatureError("is not what was signed")
    return key


def signed_by(text: str) -> str | None:
    """The fingerprint of the key that a signature names, whoever made it; None where it is no signature."""
    try:
        return PublicKey(_parts(text)[0]).fingerprint
    except SignatureError:
        return None


def _public_keys(path: Path, lines: Sequence[str]) -> Iterator[PublicKey]:
    for number, line in enumerate(lines, 1):
        key = None if line.lstrip().startswith("#") else _KEY.search(line)
        if key is None:
            continue
        if len(line[: key.start(1)].split()) > 1:  # who, and then options, which could narrow what the key is good for
            what = "an allowed signer has options, which are not read"
            remedy = "check it with `ssh-keygen -Y verify`, or name a list without options"
            raise UsageError(what, where=f"{path}:{number}", remedy=remedy)
        yield PublicKey(_decoded(key[2]))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("is no base64", remedy="name a public key of OpenSSH") from error


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _signed_data(namespace: bytes, algorithm: bytes, digest: bytes) -> bytes:
    return _MAGIC + b"".join(map(_string, (namespace, b"", algorithm, digest)))


def _parts(text: str) -> tuple[bytes, bytes, bytes, bytes]:
    """Public key, namespace, hash and signature; raises SignatureError."""
    body = "".join(text.split("\n")).strip()
    if not (body.startswith(_BEGIN) and body.endswith(_END)):
        raise SignatureError("is no signature of OpenSSH")
    try:
        blob = base64.b64decode(body.removeprefix(_BEGIN).removesuffix(_END), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SignatureError("is no signature of OpenSSH") from error
    if not blob.startswith(_MAGIC + _VERSION):
        raise SignatureError("is a signature of another version")
    strings = list(_strings(blob[len(_MAGIC + _VERSION) :]))
    if len(strings) != 5:
        raise SignatureError("is no signature of OpenSSH")
    key, namespace, _, algorithm, signature = strings
    return key, namespace, algorithm, signature


def _strings(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if at + 4 + size > len(data):
            raise SignatureError("is cut off")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _raw_signature(private: Any, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    if isinstance(private, ed25519.Ed25519PrivateKey):
        return _string(b"ssh-ed25519") + _string(private.sign(data))
    if isinstance(private, rsa.RSAPrivateKey):
        return _string(b"rsa-sha2-512") + _string(private.sign(data, padding.PKCS1v15(), hashes.SHA512()))
    if isinstance(private, ec.EllipticCurvePrivateKey):
        numbers = decode_dss_signature(private.sign(data, ec.ECDSA(_curve_hash(private.curve.key_size))))
        name = f"ecdsa-sha2-nistp{private.curve.key_size}".encode()
        return _string(name) + _string(b"".join(_string(_mpint(number)) for number in numbers))
    raise UsageError("is a key of a kind that does not sign here", remedy="name an Ed25519, ECDSA or RSA key")


def _holds(key: PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_ssh_public_key
    except ModuleNotFoundError as error:
        raise UsageError("checking a signature needs the package cryptography", remedy=EXTRA) from error
    try:
        kind, *_ = _strings(key.blob)
        public = load_ssh_public_key(kind + b" " + base64.b64encode(key.blob))
        algorithm, raw = _strings(signature)
        _verify(public, algorithm, raw, data)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def _verify(public: Any, algorithm: bytes, raw: bytes, data: bytes) -> None:
    """Raises InvalidSignature, or ValueError for an algorithm that is not the key's."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    rsa_hashes = {b"rsa-sha2-256": hashes.SHA256(), b"rsa-sha2-512": hashes.SHA512()}
    if isinstance(public, ed25519.Ed25519PublicKey) and algorithm == b"ssh-ed25519":
        public.verify(raw, data)
    elif isinstance(public, rsa.RSAPublicKey) and algorithm in rsa_hashes:
        public.verify(raw, data, padding.PKCS1v15(), rsa_hashes[algorithm])
    elif isinstance(public, ec.EllipticCurvePublicKey) and algorithm.startswith(b"ecdsa-sha2-nistp"):
        r, s = (int.from_bytes(number, "big") for number in _strings(raw))
        public.verify(encode_dss_signature(r, s), data, ec.ECDSA(_curve_hash(public.curve.key_size)))
    else:
        raise ValueError(algorithm)


def _curve_hash(bits: int) -> Any:
    from cryptography.hazmat.primitives import hashes

    return {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[bits]


def _mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")
