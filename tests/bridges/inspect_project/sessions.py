"""A task of Inspect whose samples are sessions that were written before: nothing is generated."""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
from inspect_ai.solver import solver
from inspect_ai.tool import ToolCall


def message(turn):
    if turn["role"] == "user":
        return ChatMessageUser(content=turn["text"])
    if turn["role"] == "tool":
        (result,) = turn["tool_results"]
        return ChatMessageTool(content=result["text"], tool_call_id=result["call_id"], function=turn["author"])
    calls = [
        ToolCall(id=call["id"], function=call["name"], arguments=call["input"]) for call in turn.get("tool_calls", ())
    ]
    return ChatMessageAssistant(content=turn["text"], tool_calls=calls or None)


@solver
def unchanged():
    async def solve(state, generate):  # noqa: ARG001 - Inspect's signature
        return state

    return solve


@task
def sessions():
    dataset = []
    for path in sorted(Path(__file__).parent.glob("*.session.json")):
        turns = json.loads(path.read_text(encoding="utf-8"))["turns"]
        dataset.append(Sample(id=path.name.partition(".")[0], input=[message(turn) for turn in turns]))
    return Task(dataset=dataset, solver=unchanged())
