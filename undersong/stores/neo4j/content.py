"""The digest of a graph's content: of every node and relationship that undersong stores, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from neo4j import Record

# what is stored; the taxonomy comes with the program, and other labels are other people's
LABELS = ("Agent", "Claim", "Cursor", "Evaluation", "Finding", "Grave", "Judge", "Lead", "Message", "Review", "Thread")
_encode = msgspec.msgpack.Encoder(enc_hook=str, order="sorted").encode


def content_digest(nodes: Iterable[Record], relationships: Iterable[Record]) -> str:
    """SHA-256 over all of them: another one after any change. The server's own numbers of nodes do not count.

    ``nodes``: number, labels, properties. ``relationships``: number of the first node, type, properties, number of the
    second node, and its name where it is of the taxonomy.
    """
    hashes = {number: _hash(sorted(labels), properties) for number, labels, properties in nodes}
    links = [
        _hash(hashes.get(first), kind, properties, hashes.get(second), name)
        for first, kind, properties, second, name in relationships
    ]
    return sha256(b"".join((*sorted(hashes.values()), b"/", *sorted(links)))).hexdigest()


def _hash(*parts: object) -> bytes:
    return sha256(_encode(parts)).digest()
