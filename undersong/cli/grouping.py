"""``--group-by`` of `audit` and `leads`: shares by author, model or any key of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from undersong.errors import UsageError

if TYPE_CHECKING:
    from undersong.models import Case, Conversation, Message, Row
    from undersong.report.groups import GroupShare

FIELDS = ("author", "model", "role", "conversation", "agent", "target")  # of a message; other keys are the input's
group_option = click.option(
    "--group-by", metavar="author|model|KEY", help="Also say which author, model or value of KEY the marks come from."
)


def groups(
    case: Case, rows: Iterable[Row], lookup: Callable[[str], Conversation | None], paths: Sequence[str | Path], key: str
) -> list[GroupShare]:
    """The shares by a field of the messages, else by a key of the input's own records."""
    from undersong.formats.keys import InputKeys
    from undersong.report.groups import groups_of

    def field(message: Message) -> str | None:
        value = getattr(message, key)
        return None if value is None else str(value)

    conversations = (lookup(session.conversation) for session in case.sessions)
    return groups_of(case, rows, conversations, field if key in FIELDS else InputKeys(paths, key).of)


def check_key(key: str | None, *, masked: bool) -> None:
    """Raise UsageError where names are masked and the values of a key, which may hold them, would not be."""
    if key is not None and masked and key not in FIELDS:
        what = f"the values of {key} are those of the input, in which nothing is masked"
        raise UsageError(what, where="--group-by", remedy=f"group by one of {', '.join(FIELDS)}, or do not redact")
