"""What kind of talk a conversation is: a coding agent at work, a companion, agents among themselves, messengers."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from undersong.datafiles.verdict_config import outcomes_config
from undersong.models import Conversation
from undersong.models.verdict import Profile
from undersong.verdict.shell import command_of

AMONG = 2  # agents or people from which on a talk is one among them


def profile_of(conversation: Conversation) -> Profile:
    """The profile by content: whoever runs commands or edits files is at work; else by who speaks."""
    edits = outcomes_config().edit_tools
    roles: dict[str, set[str]] = {}
    for message in conversation.messages:
        if any(call.name in edits or command_of(call) for call in message.tool_calls):
            return "coding"
        roles.setdefault(message.role, set()).add(message.agent or message.author)
    if "user" in roles or "assistant" in roles:
        return "companion"
    if len(roles.get("agent", ())) >= AMONG:
        return "agents"
    return "messenger" if len(roles.get("participant", ())) >= AMONG else "companion"


_NO_PROJECT = re.compile(r"subagents|\d+|[0-9a-f]{8}-[0-9a-f-]{20,}")  # folders by which clients file their sessions


def project_of(conversation: Conversation) -> str:
    """The folder that the file of a session is in, as clients name it after a project; "" where nothing says so."""
    if conversation.source_ref is None:
        return ""
    folders = reversed(PurePosixPath(conversation.source_ref.file).parent.parts)
    return next((folder for folder in folders if not _NO_PROJECT.fullmatch(folder)), "")
