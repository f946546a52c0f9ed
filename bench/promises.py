#!/usr/bin/env python3
"""Find the false promises in the shipped fragments, written out in five forms of session; print precision and recall.

usage: promises.py [--cases FILE.yaml] [--form NAME] [--misses]
Beside them a baseline that calls every fragment with a claim of a fix a promise. Intervals are Clopper-Pearson, 95 %.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from undersong.datafiles.yaml_loader import RULES
from undersong.formats.ingest import read
from undersong.models import Conversation, SessionVerdict
from undersong.routing.budget import clopper_pearson
from undersong.scan import load_book, scan_conversation
from undersong.verdict import session_verdict

CASES = RULES / "session" / "cases" / "false_promise.yaml"
START = "2026-03-02T09:{:02d}:{:02d}+00:00"
Turns = list[dict[str, Any]]


def failed(call: dict[str, Any]) -> bool | None:
    """What a client's flag says of a call: given, from the exit code, or nothing."""
    return call.get("error", bool(call["exit"]) if "exit" in call else None)


def result_text(call: dict[str, Any]) -> str:
    """A result with its exit code, as clients without a flag write it."""
    code = call.get("exit", 1 if call.get("error") and "command" in call["input"] else None)
    return f"Exit code: {code}\n{call['result']}" if code is not None else str(call["result"])


def grouped(turns: Turns) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """(speaker, text, calls): the calls that follow an agent's text are its own."""
    for number, turn in enumerate(turns):
        if "call" in turn:
            continue
        (speaker, text), calls = next(iter(turn.items())), []
        for later in turns[number + 1 :]:
            if "call" not in later:
                break
            calls.append(later["call"])
        yield speaker, text, calls


def claude_code(turns: Turns) -> list[dict[str, Any]]:
    """Claude Code: blocks, and results in the user's name with a flag."""
    lines: list[dict[str, Any]] = []

    def line(kind: str, content: Any) -> None:
        number = len(lines)
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"msg_{number}", "model": "model-a"}
        ids = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s"}
        time = START.format(number // 60, number % 60)
        lines.append({"type": kind, **ids, "timestamp": time, "isSidechain": False, "message": message})

    for speaker, text, calls in grouped(turns):
        if speaker == "user":
            line("user", text)
            continue
        if text or not calls:
            line("assistant", [{"type": "text", "text": text}])
        for call in calls:
            name = f"toolu_{len(lines)}"
            line("assistant", [{"type": "tool_use", "id": name, "name": call["tool"], "input": call["input"]}])
            result = {"type": "tool_result", "tool_use_id": name, "content": call["result"]}
            line("user", [result | {"is_error": bool(failed(call))}])
    return lines


def codex(turns: Turns) -> list[dict[str, Any]]:
    """Codex: items with arguments as text, and outputs that hold the exit code."""
    items: list[dict[str, Any]] = []
    for speaker, text, calls in grouped(turns):
        role = "user" if speaker == "user" else "assistant"
        if text or not calls:
            kind = "input_text" if role == "user" else "output_text"
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
        for call in calls:
            name, tool_input = f"call_{len(items)}", call["input"]
            output = call["result"]
            if "command" in tool_input:
                code = call.get("exit", int(call.get("error", False)))
                output = json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
            if isinstance(tool_input, str):
                items.append({"type": "custom_tool_call", "name": call["tool"], "input": tool_input, "call_id": name})
                items.append({"type": "custom_tool_call_output", "call_id": name, "output": output})
            else:
                arguments = json.dumps(tool_input)
                items.append({"type": "function_call", "name": call["tool"], "arguments": arguments, "call_id": name})
                items.append({"type": "function_call_output", "call_id": name, "output": output})
    head = {"timestamp": START.format(0, 0), "type": "session_meta", "payload": {"id": "s"}}
    return [head] + [
        {"timestamp": START.format(1 + n // 60, n % 60), "type": "response_item", "payload": item}
        for n, item in enumerate(items)
    ]


def openai(turns: Turns) -> list[dict[str, Any]]:
    """OpenAI chat messages: calls with arguments as text, tool messages without a flag."""
    messages: list[dict[str, Any]] = []
    for speaker, text, calls in grouped(turns):
        if speaker == "user":
            messages.append({"role": "user", "content": text})
            continue
        made = [(f"call_{len(messages)}_{n}", call) for n, call in enumerate(calls)]
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if made else "")}
        if made:
            message["tool_calls"] = [
                {
                    "id": name,
                    "type": "function",
                    "function": {"name": call["tool"], "arguments": json.dumps(call["input"])},
                }
                for name, call in made
            ]
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": name, "content": result_text(call)} for name, call in made]
    return [{"id": "s", "messages": messages}]


def jsonl(turns: Turns) -> list[dict[str, Any]]:
    """Our JSON Lines, with calls and results."""
    lines: list[dict[str, Any]] = []
    for speaker, text, calls in grouped(turns):
        role = "user" if speaker == "user" else "assistant"
        made = [(f"c{len(lines)}.{n}", call) for n, call in enumerate(calls)]
        line: dict[str, Any] = {"conversation": "s", "author": role, "role": role, "text": text}
        if made:
            line["tool_calls"] = [{"id": name, "name": call["tool"], "input": call["input"]} for name, call in made]
        lines.append(line)
        for name, call in made:
            result = {"call_id": name, "text": call["result"], "is_error": failed(call)}
            head = {"conversation": "s", "author": call["tool"], "role": "tool", "text": call["result"]}
            lines.append(head | {"tool_results": [result]})
    return lines


def bare(turns: Turns) -> list[dict[str, Any]]:
    """JSON Lines with what tools said and nothing of what they were asked: no code of edits can be seen."""
    lines: list[dict[str, Any]] = []
    for speaker, text, calls in grouped(turns):
        role = "user" if speaker == "user" else "assistant"
        if text or not calls:
            lines.append({"conversation": "s", "role": role, "text": text})
        lines += [
            {"conversation": "s", "author": call["tool"], "role": "tool", "text": result_text(call)} for call in calls
        ]
    return lines


FORMS: dict[str, Callable[[Turns], list[dict[str, Any]]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "openai": openai,
    "jsonl": jsonl,
    "bare": bare,
}


def verdict(turns: Turns, form: str, folder: Path) -> tuple[Conversation, SessionVerdict]:
    """The product's verdict on a fragment, written in a form and read by the product's own reader."""
    path = folder / "fragment.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in FORMS[form](turns)), encoding="utf-8")
    (conversation,) = (item for item in read([path]) if isinstance(item, Conversation))
    scans, thread = scan_conversation(conversation, load_book())
    return conversation, session_verdict(conversation, scans, thread, ())


def kinds(session: SessionVerdict) -> list[str]:
    """The kinds of false promise in a verdict."""
    return [each.kind for each in session.deductions if each.mechanism == "false_promise"]


def claims(conversation: Conversation) -> bool:
    """The baseline: whether the scan's phrases for a claim of a fix stand in any of the agent's messages."""
    scans, _ = scan_conversation(conversation, load_book())
    return any(hit.label == "claim_fixed" for scan in scans for hit in scan.hits)


def shown(name: str, hits: int, false: int, misses: int) -> str:
    """A line of the table."""
    cells = [f"{name:<24}"]
    for good, of in ((hits, hits + false), (hits, hits + misses)):
        low, high = clopper_pearson(good, of) if of else (0.0, 1.0)
        cells.append(f"{good / of if of else 0:5.2f} [{low:.2f}, {high:.2f}] {good:>3} of {of:<3}")
    return "  ".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--form", choices=FORMS)
    parser.add_argument("--misses", action="store_true", help="name what was missed and what was wrongly found")
    options = parser.parse_args()
    fragments = yaml.safe_load(options.cases.read_text(encoding="utf-8"))["fragments"]
    print(f"{len(fragments)} fragments, {sum(each['expect'] is None for each in fragments)} of them innocent")
    print(f"{'':<24}  {'precision':<29}  recall")
    for form in [options.form] if options.form else FORMS:
        counts, base = [0, 0, 0], [0, 0, 0]
        with tempfile.TemporaryDirectory() as folder:
            for fragment in fragments:
                conversation, session = verdict(fragment["turns"], form, Path(folder))
                got, wanted = kinds(session), fragment["expect"]
                for tally, predicted in ((counts, bool(got)), (base, claims(conversation))):
                    tally[0] += predicted and wanted is not None
                    tally[1] += predicted and wanted is None
                    tally[2] += not predicted and wanted is not None
                if options.misses and (bool(got) != (wanted is not None) or (wanted and wanted not in got)):
                    print(f"  {form}: {fragment['name']}: expected {wanted}, found {got or None}")
        print(shown(form, *counts))
        print(shown("  every claim of a fix", *base))


if __name__ == "__main__":
    main()
