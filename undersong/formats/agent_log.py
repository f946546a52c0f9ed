"""The messages of one session of a coding agent, as the readers of agents' logs put them together."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import msgspec

from undersong.models import Conversation, Message, SourceRef, ToolCall, ToolResult


class AgentLog:
    """Messages in order; what was thought belongs to the agent's next message, and a result to the call it answers."""

    def __init__(self, conversation: str) -> None:
        self.id = conversation
        self.messages: list[Message] = []
        self._tools: dict[str, str] = {}
        self._thoughts: list[str] = []

    def think(self, thought: Any) -> None:
        """Keep a thought, where it has words, for the agent's next message."""
        if isinstance(thought, str) and thought.strip():
            self._thoughts.append(thought)

    def say(
        self,
        role: str,
        text: str,
        ref: SourceRef,
        *,
        calls: tuple[ToolCall, ...] = (),
        time: datetime | None = None,
        model: str | None = None,
        message_id: str | None = None,
    ) -> None:
        """A message of the user, the agent or the program; one of the agent takes the thoughts before it."""
        thinking = ""
        if role == "assistant":
            thinking, self._thoughts = "\n\n".join(self._thoughts), []
            self._tools |= {call.id: call.name for call in calls if call.id}
        self._append(role, role, text, ref, time, model=model, tool_calls=calls, thinking=thinking, id=message_id or "")

    def answer(self, result: ToolResult, ref: SourceRef, *, time: datetime | None = None, tool: str = "tool") -> None:
        """What a tool answered, said by the tool that was called, else by ``tool``."""
        author = self._tools.get(result.call_id or "", tool)
        self._append(author, "tool", result.text, ref, time, tool_results=(result,), id="")

    def conversation(self, source_format: str, title: str | None = None) -> Conversation | None:
        """The conversation, None without a message."""
        if self._thoughts and self.messages:  # nothing followed the last thoughts
            self.say("assistant", "", cast(SourceRef, self.messages[-1].source_ref))
        if not self.messages:
            return None
        messages = tuple(msgspec.structs.replace(each, conversation=self.id) for each in self.messages)
        return Conversation(
            id=self.id,
            source_format=source_format,
            messages=messages,
            title=title,
            started_at=next((each.time for each in messages if each.time), None),
            source_ref=messages[0].source_ref,
        )

    def _append(self, author: str, role: Any, text: str, ref: SourceRef, time: datetime | None, **more: Any) -> None:
        self.messages.append(
            Message(
                conversation=self.id,
                position=len(self.messages),
                author=author,
                role=role,
                text=text,
                time=time,
                source_ref=ref,
                **more,
            )
        )


def as_object(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
