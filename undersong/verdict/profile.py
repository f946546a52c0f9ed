"""What kind of talk a conversation is: a coding agent at work, a companion, agents among themselves, messengers."""

from __future__ import annotations

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
