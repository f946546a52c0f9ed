"""Encoding of records for stores, and the statements that stores read from files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import msgspec
from msgspec.structs import FieldInfo

from undersong.models import Conversation, Finding, Message, Route, Row, Scan, State, ThreadScan, encode

T = TypeVar("T")
_ROWS = msgspec.json.Decoder(tuple[Row, ...])
_TEXTS = frozenset({"text", "hits"})  # a history holds no texts


def named_statements(path: Path) -> SimpleNamespace:
    """The statements of a Cypher or SQL file by the names in the comments above them (``// name: why``)."""
    _, *parts = re.split(r"(?m)^(?:--|//) (\w+)(?::.*)?$", path.read_text(encoding="utf-8"))
    texts = (re.sub(r"(?m)^(--|//).*$", "", text).strip() for text in parts[1::2])
    return SimpleNamespace(**dict(zip(parts[::2], texts, strict=True)))


def listed_statements(path: Path) -> list[str]:
    """The statements of a file that end with ``;``, each on one line; lines of comment are left out."""
    text = re.sub(r"(?m)^(--|//).*$", "", path.read_text(encoding="utf-8"))
    return [" ".join(statement.split()) for statement in text.split(";") if statement.strip()]


class Scans(msgspec.Struct, frozen=True, kw_only=True):
    """The scan of a conversation as one record."""

    scans: tuple[Scan, ...]
    thread: ThreadScan


class LiveMessageState(msgspec.Struct, frozen=True, kw_only=True):
    """The scan and the route that a live run stores with a message; ``named``: it came with a target of its own."""

    scan: Scan
    route: Route
    named: bool


def decoded(body: object, kind: type[T]) -> T:
    """A value back from its stored JSON; whatever is wrong with it is a ``msgspec.DecodeError``."""
    if not isinstance(body, bytes | str):
        raise msgspec.DecodeError(f"{type(body).__name__} instead of JSON")
    try:
        return msgspec.json.decode(body, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def row_body(row: Row) -> bytes:
    """A row without its text and its hits, and without what is as by default: half the bytes."""
    cells = zip(_NAMES, _values(row), _PLAIN, strict=True)
    return msgspec.json.encode({name: value for name, value, default in cells if value != default})


def rows_of(bodies: Iterable[bytes]) -> tuple[Row, ...]:
    """Rows back from their bodies, in one go."""
    try:
        return _ROWS.decode(b"[" + b",".join(bodies) + b"]")
    except (UnicodeDecodeError, RecursionError, TypeError) as error:
        raise msgspec.DecodeError(str(error)) from error


def touches(body: object, conversations: frozenset[str]) -> bool:
    """Whether a stored finding cites one of the conversations; True where it cannot be read."""
    try:
        return not conversations.isdisjoint(decoded(body, Finding).conversations)
    except msgspec.DecodeError:
        return True


def supersedes(state: State, body: bytes, stored_state: str, stored_body: bytes, *, overwrite: bool) -> bool:
    """Whether a row replaces the stored one: another one does, but without ``overwrite`` no unread one a read one."""
    return body != stored_body and (overwrite or state != "unread" or stored_state == "unread")


def outdated(conversation: Conversation, stored: Iterable[tuple[str, object]]) -> list[str]:
    """Ids of stored messages that the conversation no longer has, or has with another text or author.

    ``stored`` are their ids and bodies.
    """
    now = {message.id: message for message in conversation.messages}
    gone = []
    for name, body in stored:
        message = now.get(name)
        if message is None or (body != encode(message) and _agent_and_text(body) != (message.agent, message.text)):
            gone.append(name)
    return gone


def _agent_and_text(body: object) -> tuple[str, str] | None:
    try:
        message = decoded(body, Message)
    except msgspec.DecodeError:
        return None
    return message.agent, message.text


def _default(field: FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


_STORED_FIELDS = tuple(field for field in msgspec.structs.fields(Row) if field.name not in _TEXTS)
_NAMES, _PLAIN = tuple(field.name for field in _STORED_FIELDS), tuple(map(_default, _STORED_FIELDS))
_values = attrgetter(*_NAMES)
